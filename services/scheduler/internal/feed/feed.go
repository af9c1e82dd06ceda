// Package feed brings what happens to nodes, Pods, claims of volumes and devices, volumes and disruption budgets from
// the API to the scheduler, reduced to what it reads.
package feed

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/fieldmask"
)

// Feed watches nodes, Pods, what the claims of Pods depend on, what Pods belong to, and what keeps Pods from being
// disrupted.
type Feed struct {
	informers []cache.SharedIndexInformer
	synced    []cache.InformerSynced
}

// live selects the Pods that take room or want some: those that have ended look deleted.
var live = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
)

// New returns a Feed that calls deliver with every change, in the order of the API for each object. Calls for objects
// of different kinds come from different goroutines. newInformer makes the informers. Kinds that the apiserver does not
// serve have no objects, except nodes and Pods, for which the Feed waits.
func New(client kubernetes.Interface, newInformer fieldmask.NewInformer, deliver func(Change)) (*Feed, error) {
	f := &Feed{}
	for i := range kinds {
		k := &kinds[i]
		source := cache.NewListWatchFromClient(k.rest(client), k.resource, "", k.selector())
		if !k.isNeeded() {
			source = optional(source)
		}
		if err := f.follow(newInformer(source, k.object, 0, nil), k, deliver); err != nil {
			return nil, fmt.Errorf("watching %s: %w", k.resource, err)
		}
	}
	return f, nil
}

func (f *Feed) follow(informer cache.SharedIndexInformer, k *kind, deliver func(Change)) error {
	if err := informer.SetTransform(k.trim); err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(k.changes.handler(deliver))
	if err != nil {
		return err
	}
	f.informers = append(f.informers, informer)
	f.synced = append(f.synced, registration.HasSynced)
	return nil
}

// Run watches until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, informer := range f.informers {
		wg.Go(func() { informer.RunWithContext(ctx) })
	}
	wg.Wait()
}

// Synced reports whether all that was there at the start has been delivered.
func (f *Feed) Synced() bool {
	for _, synced := range f.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// WaitForSync returns true when Synced, false when ctx ended before.
func (f *Feed) WaitForSync(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), f.synced...)
}
