// Package extender decides which extenders have a say on a Pod and what their answers mean. An extender is a web
// service of others that filters and scores nodes, changes who is preempted, or binds; KubeSchedulerConfiguration lists
// them.
//
// The package is pure: package extenderclient calls them.
//
//keelson:decision
package extender

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
)

// Question is what extenders are asked about a Pod: which of the nodes that can take it are good for it, or, where none
// can, which of the plans to make room are.
type Question struct {
	Pod *corev1.Pod
	// Extenders are those with a say, by their place in the list.
	Extenders []int
	Nodes     []string
	// Plans are the victims by node; nil where it is about Nodes.
	Plans map[string]Victims
}

// Victims are the Pods whose room on a node a Pod takes.
type Victims struct {
	Pods []*corev1.Pod
	// Violations is how many of them a budget forbids to evict.
	Violations int
}

// Answer is what the extenders of a Question say together.
type Answer struct {
	// Left are the nodes that all of them let pass, Scores what they add to the scores of these.
	Left   []string
	Scores map[string]int64
	// Failed says why a node was refused, by node.
	Failed map[string]string
	// Plans are the victims of the plans that all of them let pass, by node.
	Plans map[string][]types.UID
	// Err is set where one that is not ignorable gave no answer of use.
	Err error
}

// Consulted returns the indices of the extenders that have a say on which node the Pod gets.
func Consulted(extenders []schedulerv1.Extender, p *corev1.Pod) []int {
	var out []int
	for i := range extenders {
		e := &extenders[i]
		if (e.FilterVerb != "" || e.PrioritizeVerb != "" || e.PreemptVerb != "") && Interested(e, p) {
			out = append(out, i)
		}
	}
	return out
}

// Binder returns the place of the extender that binds the Pod; false when none does.
func Binder(extenders []schedulerv1.Extender, p *corev1.Pod) (int, bool) {
	i := slices.IndexFunc(extenders, func(e schedulerv1.Extender) bool { return e.BindVerb != "" && Interested(&e, p) })
	return i, i >= 0
}

// Interested reports whether the extender has a say on the Pod: it manages no resource in particular, or one that the
// Pod requests.
func Interested(e *schedulerv1.Extender, p *corev1.Pod) bool {
	if len(e.ManagedResources) == 0 {
		return true
	}
	managed := func(c corev1.Container) bool {
		return slices.ContainsFunc(e.ManagedResources, func(r schedulerv1.ExtenderManagedResource) bool {
			_, requested := c.Resources.Requests[corev1.ResourceName(r.Name)]
			return requested
		})
	}
	return slices.ContainsFunc(p.Spec.Containers, managed) || slices.ContainsFunc(p.Spec.InitContainers, managed)
}
