// Package podfeed follows the Pods of the cluster once for all collectors. An informer wakes two goroutines up for
// each handler and change, which is more than what most collectors do about one.
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

	"keelson.dev/kit/follow"
	"keelson.dev/services/podgc/internal/nodepods"
)

// Follower is called with the last state of a Pod and its present one: the last is nil for a Pod that is new to it,
// the present one for a Pod that is gone. Both are shared and never changed. It must not block.
type Follower func(last, now *corev1.Pod)

// Feed knows the Pods as its followers do. It is safe for concurrent use.
type Feed struct {
	mu        sync.Mutex // guards what follows, and is held while followers are called
	pods      map[types.UID]*corev1.Pod
	nodes     nodepods.Index
	followers []*Follower
	synced    toolscache.InformerSynced
}

// New returns a feed that is connected to no informer yet.
func New() *Feed { return &Feed{pods: map[types.UID]*corev1.Pod{}} }

// Follow calls the follower with all Pods that are known, and from then on with each change until stop is called. It
// has been called with all Pods of the cluster when synced says so.
func (f *Feed) Follow(ctx context.Context, pods cache.Cache, follower Follower) (synced toolscache.InformerSynced,
	stop func(), err error) {
	informer, err := pods.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, nil, fmt.Errorf("getting the informer of Pods: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.synced == nil {
		registration, err := informer.AddEventHandler(follow.Handler(f.put, f.gone))
		if err != nil {
			return nil, nil, fmt.Errorf("following Pods: %w", err)
		}
		f.synced = registration.HasSynced
	}
	f.followers = append(f.followers, &follower)
	for _, pod := range f.pods {
		follower(nil, pod)
	}
	return f.synced, func() { f.leave(&follower) }, nil
}

func (f *Feed) leave(follower *Follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers = slices.DeleteFunc(f.followers, func(other *Follower) bool { return other == follower })
}

// On returns the Pods that are bound to the node, as far as they are known. They are shared and never changed.
func (f *Feed) On(node string) []*corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes.On(node)
}

// Elsewhere returns those that are bound to any other node than these.
func (f *Feed) Elsewhere(nodes map[string]*corev1.Node) []*corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes.Elsewhere(nodes)
}

// put takes in a Pod as it is now.
func (f *Feed) put(now *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.pods[now.UID]
	f.pods[now.UID] = now
	f.nodes.Replace(last, now)
	f.tell(last, now)
}

func (f *Feed) gone(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := f.pods[pod.UID]; last != nil {
		delete(f.pods, pod.UID)
		f.nodes.Replace(last, nil)
		f.tell(last, nil)
	}
}

func (f *Feed) tell(last, now *corev1.Pod) {
	for _, follower := range f.followers {
		(*follower)(last, now)
	}
}
