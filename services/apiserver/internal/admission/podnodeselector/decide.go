package podnodeselector

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// annotation is where a namespace says which nodes its Pods go to.
const annotation = "scheduler.alpha.kubernetes.io/node-selector"

var (
	errConflict  = errors.New("pod node label selector conflicts with its namespace node label selector")
	errForbidden = errors.New("pod node label selector labels conflict with its namespace whitelist")
)

// ofNamespace are the labels of the nodes that Pods of the namespace go to: its own, else the default.
func ofNamespace(namespace *corev1.Namespace, byDefault labels.Set) (labels.Set, error) {
	text, said := namespace.Annotations[annotation]
	if !said {
		return byDefault, nil
	}
	selected, err := labels.ConvertSelectorToLabelsMap(text)
	if err != nil {
		return nil, fmt.Errorf("the annotation %s of the namespace %s: %w", annotation, namespace.Name, err)
	}
	return selected, nil
}

// merge is what a Pod selects together with its namespace; both may not want different nodes.
func merge(pod map[string]string, namespace labels.Set) (map[string]string, error) {
	if labels.Conflicts(namespace, pod) {
		return nil, errConflict
	}
	if len(namespace) == 0 {
		return pod, nil
	}
	merged := maps.Clone(map[string]string(namespace))
	maps.Copy(merged, pod)
	return merged, nil
}

// check refuses a Pod that wants other nodes than its namespace, or that selects by something beyond what the operator
// allows; nil allows everything.
func check(pod map[string]string, namespace, allowed labels.Set) error {
	if labels.Conflicts(namespace, pod) {
		return errConflict
	}
	if len(allowed) == 0 {
		return nil
	}
	for key, value := range pod {
		if of, is := allowed[key]; !is || of != value {
			return errForbidden
		}
	}
	return nil
}
