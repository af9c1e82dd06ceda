// Package podsource brings the Pods of this node to their workers, and nothing else. They come from the API (API);
// every other place of theirs, such as a folder of manifests, is a Source beside it.
package podsource

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Workers is notified of Pods.
type Workers interface {
	// Set takes a version of a Pod. known says that the node has run it before.
	Set(pod *corev1.Pod, known bool)
	// Remove says that the Pod's source has no object of the UID any more.
	Remove(uid types.UID)
}

// Source is one place that Pods of this node come from. A Pod's UID belongs to one source.
type Source interface {
	// Run notifies the workers of Pods until ctx ends.
	Run(ctx context.Context)
	// Synced waits until the workers know all Pods that the source had at the beginning; false if ctx ends before. What
	// the node has of Pods that no source knows by then is taken down.
	Synced(ctx context.Context) bool
}

// All makes one source of several: it is synced when each of them is.
func All(sources ...Source) Source { return all(sources) }

type all []Source

// Run implements Source.
func (a all) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, source := range a {
		running.Go(func() { source.Run(ctx) })
	}
	running.Wait()
}

// Synced implements Source.
func (a all) Synced(ctx context.Context) bool {
	for _, source := range a {
		if !source.Synced(ctx) {
			return false
		}
	}
	return true
}
