package wake

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/selectors"
)

// Owners are the objects of one kind, which keep the objects that they control and adopt those that their selectors
// match and nobody controls.
type Owners struct {
	// Kind is the owners' kind. Its version does not matter.
	Kind schema.GroupKind
	// Selectors are those of all objects of the kind.
	Selectors *selectors.Index
}

// NewOwners returns the owners of a kind; none is known yet.
func NewOwners(kind schema.GroupVersionKind) Owners {
	return Owners{Kind: kind.GroupKind(), Selectors: selectors.New()}
}

// Names says whether the reference is there and names an object of the kind, in whatever version.
func Names(reference *metav1.OwnerReference, kind schema.GroupKind) bool {
	if reference == nil || reference.Kind != kind.Kind {
		return false
	}
	group, _, found := strings.Cut(reference.APIVersion, "/")
	return found && group == kind.Group || !found && kind.Group == ""
}

// OfPod asks for passes over the owners that have, had or could adopt a Pod that changed.
func (o Owners) OfPod(pod *corev1.Pod, change podset.Change) []reconcile.Request {
	var requests []reconcile.Request
	for _, reference := range []*metav1.OwnerReference{change.Before, change.After} {
		if Names(reference, o.Kind) {
			requests = append(requests, Request(pod.Namespace, reference.Name))
		}
	}
	if change.After == nil && !change.Ended && pod.DeletionTimestamp == nil {
		requests = append(requests, o.Matching(pod)...)
	}
	return requests
}

// Matching asks for passes over the owners whose selectors match the object.
func (o Owners) Matching(object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range o.Selectors.Matching(object.GetNamespace(), object.GetLabels()) {
		requests = append(requests, Request(object.GetNamespace(), name))
	}
	return requests
}

// of asks for passes over the owner that has the object or those that could adopt it.
func (o Owners) of(object client.Object) []reconcile.Request {
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
	wake := func(object T, q Queue) { Add(q, owners.of(object)) }
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q Queue) { wake(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q Queue) {
			wake(e.ObjectOld, q)
			wake(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q Queue) { wake(e.Object, q) },
	}
}
