package namespace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// strategy rules the writes of a Namespace itself: labels and annotations.
var strategy = rest.Strategy[*corev1.Namespace]{
	ClusterScoped:    true,
	Name:             apivalidation.NameIsDNSLabel,
	PrepareForCreate: prepareForCreate,
	PrepareForUpdate: func(ns, old *corev1.Namespace) { ns.Spec, ns.Status = old.Spec, old.Status },
	Canonicalize:     Default,
	Validate:         Validate,
	ResetFields:      map[string][]string{"v1": {"status"}},
}

// statusStrategy rules the writes of /status.
var statusStrategy = rest.Strategy[*corev1.Namespace]{
	ClusterScoped:    true,
	Name:             apivalidation.NameIsDNSLabel,
	PrepareForUpdate: func(ns, old *corev1.Namespace) { ns.Spec = old.Spec },
	ValidateUpdate:   ValidateStatusUpdate,
	ResetFields:      map[string][]string{"v1": {"spec"}},
}

// finalizeStrategy rules the writes of /finalize: spec.finalizers and nothing of the status.
var finalizeStrategy = rest.Strategy[*corev1.Namespace]{
	ClusterScoped:    true,
	Name:             apivalidation.NameIsDNSLabel,
	PrepareForUpdate: func(ns, old *corev1.Namespace) { ns.Status = old.Status },
	ValidateUpdate:   ValidateFinalizeUpdate,
	ResetFields:      map[string][]string{"v1": {"status"}},
}

// prepareForCreate makes the namespace active and asks for its contents to be removed before it.
func prepareForCreate(ns *corev1.Namespace) {
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
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

// markTerminating is what a delete does to a namespace that is not deleted yet.
func markTerminating(ns *corev1.Namespace, options *metav1.DeleteOptions, now metav1.Time) {
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
