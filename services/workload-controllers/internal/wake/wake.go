// Package wake says which objects a controller looks at again when something changes.
package wake

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/controller"
)

// Queue is what a controller works off.
type Queue = controller.Queue[reconcile.Request]

// Request asks for a pass over one object.
func Request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// Add puts requests into the queue.
func Add(q Queue, requests []reconcile.Request) {
	for _, request := range requests {
		q.Add(request)
	}
}

// Self wakes up the object itself, after observe was called with it. For one that is gone only forget is called.
func Self[T client.Object](observe, forget func(T)) handler.TypedFuncs[T, reconcile.Request] {
	set := func(object T, q Queue) {
		observe(object)
		q.Add(Request(object.GetNamespace(), object.GetName()))
	}
	return controller.Follow(set, func(object T, _ Queue) { forget(object) })
}

// NamespaceOf wakes up the namespace of an object that the controller keeps in each under this name.
func NamespaceOf[T client.Object](name string) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object T) []reconcile.Request {
		if object.GetName() != name {
			return nil
		}
		return []reconcile.Request{Request("", object.GetNamespace())}
	})
}
