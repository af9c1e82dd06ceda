// Package follow reports the changes of an informer's objects, object by object. It is the only place that knows how an
// informer speaks: a linter forbids client-go's handlers elsewhere.
package follow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Handler calls set with every object that is new or changed, and gone with every one that is no longer there, in the
// state that was known last.
//
// Objects are distinguished by their UID. An informer knows them by name: one that was deleted and made again while the
// watch was interrupted comes as an update of the first to the second. The handler calls gone for the first and set for
// the second.
func Handler[T metav1.Object](set, gone func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { call(object, set) },
		UpdateFunc: func(before, after any) {
			call(before, func(old T) {
				if now, ok := after.(T); ok && now.GetUID() != old.GetUID() {
					gone(old)
				}
			})
			call(after, set)
		},
		DeleteFunc: func(object any) {
			// The watch was interrupted, and its last state is the one of before.
			if lost, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = lost.Obj
			}
			call(object, gone)
		},
	}
}

// Changes calls changed for every object that is new, changed or gone.
func Changes(changed func()) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	}
}

func call[T any](object any, f func(T)) {
	if typed, ok := object.(T); ok {
		f(typed)
	}
}
