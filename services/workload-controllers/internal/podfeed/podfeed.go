// Package podfeed keeps a podset.Index up to date from the Pod informer and notifies controllers whose Pods changed.
// One feed serves all controllers of a process.
package podfeed

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/follow"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/podset"
)

// Subscriber is called after a change, when the index has taken it in. It must not block.
type Subscriber func(pod *corev1.Pod, change podset.Change)

// Feed holds the index. It is safe for concurrent use.
type Feed struct {
	// Index is read by reconciles.
	Index *podset.Index

	mu          sync.Mutex // guards what follows
	store       toolscache.Indexer
	synced      toolscache.InformerSynced
	subscribers []*Subscriber // replaced, never changed, so that readers may iterate over it
}

// New returns a feed that is connected to no informer yet.
func New() *Feed {
	return &Feed{Index: podset.NewIndex()}
}

// Connect follows the cache's Pods from the first call on and returns when the index holds all of them. Controllers
// call it before they start: one that acted on half an index would create Pods that exist.
func (f *Feed) Connect(ctx context.Context, pods cache.Cache) error {
	if err := f.follow(ctx, pods); err != nil {
		return fmt.Errorf("following Pods: %w", err)
	}
	f.mu.Lock()
	synced := f.synced
	f.mu.Unlock()
	if !toolscache.WaitForCacheSync(ctx.Done(), synced) {
		return fmt.Errorf("filling the index of Pods: %w", ctx.Err())
	}
	return nil
}

func (f *Feed) follow(ctx context.Context, pods cache.Cache) error {
	informer, err := controller.Informer(ctx, pods, &corev1.Pod{})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.synced != nil {
		return nil
	}
	registration, err := informer.AddEventHandler(follow.Handler(f.upsert, f.delete))
	if err != nil {
		return err
	}
	f.store, f.synced = informer.GetIndexer(), registration.HasSynced
	return nil
}

// Subscribe adds a subscriber and returns the function that removes it.
func (f *Feed) Subscribe(s Subscriber) (cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscribers = append(slices.Clip(f.subscribers), &s)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.subscribers = slices.DeleteFunc(slices.Clone(f.subscribers),
			func(other *Subscriber) bool { return other == &s })
	}
}

// Written is seen when the index has the Pod at the version that the write returned, or a later state.
func (f *Feed) Written(pod *corev1.Pod) gate.Seen {
	gone := gate.Written(f.indexer(), pod)
	return func() bool {
		if known := f.Index.Get(pod.UID); known != nil {
			return gate.AtLeast(known.ResourceVersion, pod.ResourceVersion)
		}
		// The index follows the store: a Pod that came and went between two lists never reaches it.
		return !f.stored(pod) && gone()
	}
}

// Deleted is seen when the index no longer has the Pod, or has it as terminating.
func (f *Feed) Deleted(uid types.UID) gate.Seen {
	return func() bool {
		known := f.Index.Get(uid)
		return known == nil || known.DeletionTimestamp != nil
	}
}

func (f *Feed) stored(pod *corev1.Pod) bool {
	item, exists, err := f.indexer().GetByKey(toolscache.ObjectName{Namespace: pod.Namespace, Name: pod.Name}.String())
	if err != nil || !exists {
		return false
	}
	stored, ok := item.(*corev1.Pod)
	return ok && stored.UID == pod.UID
}

func (f *Feed) indexer() toolscache.Indexer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.store
}

func (f *Feed) upsert(pod *corev1.Pod) { f.publish(pod, f.Index.Upsert(pod)) }

func (f *Feed) delete(pod *corev1.Pod) { f.publish(pod, f.Index.Delete(pod)) }

func (f *Feed) publish(pod *corev1.Pod, change podset.Change) {
	f.mu.Lock()
	subscribers := f.subscribers
	f.mu.Unlock()
	for _, s := range subscribers {
		(*s)(pod, change)
	}
}
