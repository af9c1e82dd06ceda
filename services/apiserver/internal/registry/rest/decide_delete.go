package rest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
)

// dependentsFinalizers are the finalizers with which an object waits for the collector of its dependents.
var dependentsFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}

// deletionFinalizers are the finalizers that an object has after a delete with these options. What is to happen to its
// dependents says the request, else a finalizer that the object has already, else its kind.
func deletionFinalizers(finalizers []string, options *metav1.DeleteOptions,
	kind genericrest.GarbageCollectionPolicy) []string {
	want := dependentsFinalizer(finalizers, options, kind)
	kept := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		return slices.Contains(dependentsFinalizers, f)
	})
	if want != "" {
		kept = append(kept, want)
	}
	if len(kept) == len(finalizers) && (want == "" || slices.Contains(finalizers, want)) {
		return finalizers
	}
	return kept
}

func dependentsFinalizer(finalizers []string, options *metav1.DeleteOptions,
	kind genericrest.GarbageCollectionPolicy) string {
	orphan := options.OrphanDependents
	switch {
	case kind == genericrest.Unsupported:
		return ""
	case orphan != nil && *orphan:
		return metav1.FinalizerOrphanDependents
	case orphan != nil:
		return ""
	case options.PropagationPolicy != nil:
		return map[metav1.DeletionPropagation]string{
			metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
			metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
		}[*options.PropagationPolicy]
	}
	for _, f := range finalizers {
		if slices.Contains(dependentsFinalizers, f) {
			return f
		}
	}
	if kind == genericrest.OrphanDependents {
		return metav1.FinalizerOrphanDependents
	}
	return ""
}

// markDeleting is what a delete writes into an object without a grace period that its finalizers keep.
func markDeleting(obj metav1.Object, now metav1.Time) {
	marked := obj.GetDeletionTimestamp()
	if marked == nil && obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
	if marked == nil || marked.After(now.Time) {
		obj.SetDeletionTimestamp(&now)
	}
	obj.SetDeletionGracePeriodSeconds(ptr.To[int64](0))
}
