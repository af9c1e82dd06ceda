// Package runtimeclass says what a RuntimeClass makes of a Pod that names it, as admission and those that predict it
// have it.
//
//keelson:decision
package runtimeclass

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Missing returns why a Pod is refused whose class is not there.
func Missing(name string) error { return fmt.Errorf("pod rejected: RuntimeClass %q not found", name) }

// Apply gives the Pod what its class says: the overhead, and where Pods of the class can run. Class is nil for a Pod
// that names none.
func Apply(pod *corev1.Pod, class *nodev1.RuntimeClass) error {
	if class == nil {
		return nil
	}
	if class.Overhead != nil {
		if pod.Spec.Overhead == nil {
			pod.Spec.Overhead = class.Overhead.PodFixed.DeepCopy()
		} else if err := Check(pod, class); err != nil {
			return err
		}
	}
	if class.Scheduling == nil {
		return nil
	}
	if err := selectNodes(pod, class.Scheduling.NodeSelector); err != nil {
		return err
	}
	for _, toleration := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(has corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(has, toleration)
		}) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
		}
	}
	return nil
}

// selectNodes adds the class's labels to those that the Pod asks of its node.
func selectNodes(pod *corev1.Pod, labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if has, ok := pod.Spec.NodeSelector[key]; ok && has != labels[key] {
			return fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s",
				key, labels[key], key, has)
		}
	}
	if pod.Spec.NodeSelector == nil && len(labels) > 0 {
		pod.Spec.NodeSelector = map[string]string{}
	}
	maps.Copy(pod.Spec.NodeSelector, labels)
	return nil
}

// Check refuses an overhead that is not the class's.
func Check(pod *corev1.Pod, class *nodev1.RuntimeClass) error {
	switch {
	case class != nil && class.Overhead != nil:
		if !equality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return fmt.Errorf("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
		}
	case len(pod.Spec.Overhead) > 0:
		return fmt.Errorf("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
	}
	return nil
}
