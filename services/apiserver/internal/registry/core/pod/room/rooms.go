package room

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/kit/contained"
)

const (
	// pause lies between tries to read the Pods.
	pause = time.Second
	// following is what breaks off where following the store does.
	following = "following Pods on nodes"
)

// Pods is the store of the Pods.
type Pods interface {
	rest.Lister
	rest.Watcher
}

// Rooms is the room on all nodes. It follows the store from the first binding until it is closed.
type Rooms struct {
	pods   Pods
	ledger *ledger
	begin  sync.Once
	// synced is closed when the Pods have been read once; done ends the following.
	synced chan struct{}
	done   context.Context
	stop   context.CancelFunc
}

// New returns the room on the nodes of the store's Pods.
func New(pods Pods) *Rooms {
	done, stop := context.WithCancel(context.Background())
	return &Rooms{pods: pods, ledger: newLedger(), synced: make(chan struct{}), done: done, stop: stop}
}

// Close ends the following of the store.
func (r *Rooms) Close() { r.stop() }

// Reserve holds room for the Pod on the node, or returns a *Full. What looks full by what was heard of the store is
// looked at in the store itself before it is refused.
func (r *Rooms) Reserve(ctx context.Context, pod *corev1.Pod, node *corev1.Node) (*Reservation, error) {
	r.begin.Do(func() { contained.Go(following, r.follow, nil) })
	select {
	case <-r.synced:
	case <-ctx.Done():
		return nil, apierrors.NewServiceUnavailable("the Pods of the nodes are still being read")
	}
	held, err := r.ledger.reserve(pod, node)
	if full := (*Full)(nil); !errors.As(err, &full) {
		return held, err
	}
	if err := r.look(ctx, node.Name); err != nil {
		return nil, err
	}
	return r.ledger.reserve(pod, node)
}

// look drops what the store no longer has on the node.
func (r *Rooms) look(ctx context.Context, node string) error {
	mark := r.ledger.mark()
	pods, _, err := r.list(ctx, fields.AndSelectors(active(), fields.OneTermEqualSelector("spec.nodeName", node)))
	if err != nil {
		return err
	}
	listed := make(map[types.UID]bool, len(pods))
	for i := range pods {
		listed[pods[i].UID] = true
	}
	r.ledger.forget(node, mark, listed)
	return nil
}

// follow keeps the ledger in step with the store.
func (r *Rooms) follow() {
	for r.done.Err() == nil {
		_ = contained.Do(following, r.followOnce) // it is tried again as after any failure
		select {
		case <-time.After(pause):
		case <-r.done.Done():
		}
	}
}

// followOnce reads all Pods on nodes and then what becomes of them, until the watch ends.
func (r *Rooms) followOnce() {
	mark := r.ledger.mark()
	selector := fields.AndSelectors(active(), fields.OneTermNotEqualSelector("spec.nodeName", ""))
	pods, version, err := r.list(r.done, selector)
	if err != nil {
		return
	}
	r.ledger.replace(pods, mark)
	select {
	case <-r.synced:
	default:
		close(r.synced)
	}
	events, err := r.pods.Watch(allNamespaces(r.done), &internalversion.ListOptions{FieldSelector: selector,
		ResourceVersion: version})
	if err != nil {
		return
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if !r.note(event) {
			return
		}
	}
}

// note takes in one event; false: the Pods must be read again.
func (r *Rooms) note(event watch.Event) bool {
	object := event.Object
	if shared, ok := object.(runtime.CacheableObject); ok {
		object = shared.GetObject()
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return false
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		r.ledger.set(pod)
	case watch.Deleted:
		r.ledger.drop(pod)
	}
	return true
}

// active selects the Pods that have not ended: the others take no room.
func active() fields.Selector {
	return fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	)
}

func (r *Rooms) list(ctx context.Context, selector fields.Selector) ([]corev1.Pod, string, error) {
	found, err := r.pods.List(allNamespaces(ctx), &internalversion.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, "", err
	}
	list, ok := found.(*corev1.PodList)
	if !ok {
		return nil, "", fmt.Errorf("listing Pods: unexpected object %T", found)
	}
	return list.Items, list.ResourceVersion, nil
}

// allNamespaces is ctx without the namespace of the request that it may belong to.
func allNamespaces(ctx context.Context) context.Context {
	return genericapirequest.WithNamespace(ctx, "")
}
