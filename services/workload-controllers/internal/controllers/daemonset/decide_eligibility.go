package daemonset

import (
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// verdict is how a DaemonSet treats a node.
type verdict uint8

// A node that gets a taint NoSchedule keeps the Pod that it has.
const (
	unfit verdict = iota // must have no Pod
	keeps                // keeps its Pod and gets no new one
	runs                 // must run a Pod
)

// eligibility decides where a DaemonSet's Pods run. It reads only a node's name, labels and taints.
type eligibility struct {
	nodeName    string // spec.template.spec.nodeName
	required    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

func eligibilityOf(set *appsv1.DaemonSet) *eligibility {
	spec := &set.Spec.Template.Spec
	return &eligibility{
		nodeName:    spec.NodeName,
		required:    nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}),
		tolerations: tolerations(spec),
	}
}

// of returns the verdict on a node.
func (e *eligibility) of(node *corev1.Node) verdict {
	if e.nodeName != "" && e.nodeName != node.Name {
		return unfit
	}
	// The apiserver refuses invalid terms; those of an older object match no node.
	if matches, err := e.required.Match(node); err != nil || !matches {
		return unfit
	}
	result := runs
	for i := range node.Spec.Taints {
		switch taint := &node.Spec.Taints[i]; {
		case taint.Effect == corev1.TaintEffectPreferNoSchedule || e.tolerates(taint):
		case taint.Effect == corev1.TaintEffectNoExecute:
			return unfit
		default:
			result = keeps
		}
	}
	return result
}

func (e *eligibility) tolerates(taint *corev1.Taint) bool {
	for i := range e.tolerations {
		if e.tolerations[i].ToleratesTaint(logr.Discard(), taint, true) {
			return true
		}
	}
	return false
}
