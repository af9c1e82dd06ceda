package wake

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/controller"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/selectors"
)

// Owners are the objects of one kind, which keep the objects that they control and adopt those that their selectors
// match and that have no controller.
type Owners struct {
	// Kind is the owners' kind. Its version does not matter.
	Kind schema.GroupKind
	// Selectors are those of all objects of the kind.
	Selectors *selectors.Index
	// Place says that what an owner does depends on which nodes its Pods are on. Others are not woken up by a binding.
	Place bool
}

// NewOwners returns the owners of a kind; none is known yet.
func NewOwners(kind schema.GroupVersionKind) Owners {
	return Owners{Kind: kind.GroupKind(), Selectors: selectors.New()}
}

// Names reports whether the reference is there and names an object of the kind, in any version.
func Names(reference *metav1.OwnerReference, kind schema.GroupKind) bool {
	if reference == nil || reference.Kind != kind.Kind {
		return false
	}
	group, _, found := strings.Cut(reference.APIVersion, "/")
	return found && group == kind.Group || !found && kind.Group == ""
}

// OfPod asks for passes over the owners that have, had or could adopt a Pod that changed, each once.
func (o Owners) OfPod(pod *corev1.Pod, change podset.Change) []reconcile.Request {
	if !o.Place && isBinding(pod, change) {
		return nil
	}
	var requests []reconcile.Request
	if Names(change.Before, o.Kind) {
		requests = append(requests, Request(pod.Namespace, change.Before.Name))
	}
	if Names(change.After, o.Kind) && (len(requests) == 0 || change.Before.Name != change.After.Name) {
		requests = append(requests, Request(pod.Namespace, change.After.Name))
	}
	if change.After == nil && !change.Ended && pod.DeletionTimestamp == nil {
		requests = append(requests, o.Matching(pod)...)
	}
	return requests
}

// isBinding reports whether all that changed about an owned Pod is its node, and what its conditions tell of that.
func isBinding(pod *corev1.Pod, change podset.Change) bool {
	last := change.Last
	if last == nil || change.Gone || last.Spec.NodeName != "" || pod.Spec.NodeName == "" ||
		change.Before == nil || change.After == nil || change.Before.UID != change.After.UID {
		return false
	}
	return last.DeletionTimestamp.Equal(pod.DeletionTimestamp) && maps.Equal(last.Labels, pod.Labels) &&
		maps.Equal(last.Annotations, pod.Annotations) && slices.Equal(last.Finalizers, pod.Finalizers) &&
		sameStatus(&last.Status, &pod.Status)
}

// sameStatus reports whether two states of a Pod tell the same of it, but for whether it is scheduled. Containers
// tell nothing before they start.
func sameStatus(last, now *corev1.PodStatus) bool {
	told := len(last.ContainerStatuses) + len(last.InitContainerStatuses) + len(now.ContainerStatuses) +
		len(now.InitContainerStatuses)
	return told == 0 && last.Phase == now.Phase && sameConditions(last.Conditions, now.Conditions) &&
		sameConditions(now.Conditions, last.Conditions)
}

// sameConditions reports whether all of some conditions are among others; whether the Pod is scheduled does not
// matter.
func sameConditions(some, others []corev1.PodCondition) bool {
	for i := range some {
		if some[i].Type != corev1.PodScheduled && !slices.Contains(others, some[i]) {
			return false
		}
	}
	return true
}

// Matching asks for passes over the owners whose selectors match the object.
func (o Owners) Matching(object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range o.Selectors.Matching(object.GetNamespace(), object.GetLabels()) {
		requests = append(requests, Request(object.GetNamespace(), name))
	}
	return requests
}

// Of asks for passes over the owner that has the object or those that could adopt it.
func (o Owners) Of(object client.Object) []reconcile.Request {
	reference := metav1.GetControllerOfNoCopy(object)
	switch {
	case reference == nil:
		return o.Matching(object)
	case Names(reference, o.Kind):
		return []reconcile.Request{Request(object.GetNamespace(), reference.Name)}
	default:
		return nil
	}
}

// Owned wakes up the owners that have, had or could adopt an object that changed.
func Owned[T client.Object](owners Owners) handler.TypedFuncs[T, reconcile.Request] {
	return controller.Each(func(object T, q Queue) { Add(q, owners.Of(object)) })
}
