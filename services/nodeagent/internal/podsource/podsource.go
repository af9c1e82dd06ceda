// Package podsource passes the Pods of this node to their workers, and does nothing else. They come from the API
// (API) or, static ones, from a folder of manifests (package staticpods).
package podsource

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Workers is notified of Pods.
type Workers interface {
	// Set takes in a version of a Pod. known means that the node has run the Pod before.
	Set(pod *corev1.Pod, known bool)
	// Remove notes that the Pod's source has no object of the UID any more.
	Remove(uid types.UID)
}

// Source is one source of the Pods of this node. A Pod's UID belongs to one source.
type Source interface {
	// Run notifies the workers of Pods until ctx ends.
	Run(ctx context.Context)
	// Synced waits until the workers know all Pods that the source had at the beginning; false if ctx ends before.
	// Pods of the node that no source knows by then are taken down.
	Synced(ctx context.Context) bool
}
