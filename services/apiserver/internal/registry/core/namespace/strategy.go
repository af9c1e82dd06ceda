package namespace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/resource"
)

// finalizeStrategy rules the writes of /finalize: spec.finalizers and nothing of the status.
var finalizeStrategy = resource.Strategy[*corev1.Namespace]{
	PrepareForUpdate: func(ns, old *corev1.Namespace) { ns.Status = old.Status },
	ValidateUpdate:   ValidateFinalizeUpdate,
	ResetFields:      []string{"status"},
	PutOnly:          true,
}

// prepareForCreate makes the namespace active and asks for its contents to be removed before it.
func prepareForCreate(ns *corev1.Namespace) {
	ns.Status.Phase = corev1.NamespaceActive
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
}

// Default labels the namespace with its own name, so that selectors can mean it.
func Default(ns *corev1.Namespace) {
	if ns.Name == "" {
		return
	}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
}

// MarkTerminating is what a delete does to a namespace that is not deleted yet.
func MarkTerminating(ns *corev1.Namespace, options *metav1.DeleteOptions, now metav1.Time) {
	if ns.DeletionTimestamp.IsZero() {
		ns.DeletionTimestamp = &now
	}
	ns.Status.Phase = corev1.NamespaceTerminating
	orphan := ptr.Deref(options.OrphanDependents, false)
	foreground := false
	if policy := options.PropagationPolicy; policy != nil {
		orphan, foreground = *policy == metav1.DeletePropagationOrphan, *policy == metav1.DeletePropagationForeground
	}
	ns.Finalizers = withFinalizer(ns.Finalizers, metav1.FinalizerOrphanDependents, orphan)
	ns.Finalizers = withFinalizer(ns.Finalizers, metav1.FinalizerDeleteDependents, foreground)
}

func withFinalizer(finalizers []string, name string, want bool) []string {
	switch {
	case want && !slices.Contains(finalizers, name):
		return append(finalizers, name)
	case !want:
		return slices.DeleteFunc(finalizers, func(f string) bool { return f == name })
	}
	return finalizers
}
