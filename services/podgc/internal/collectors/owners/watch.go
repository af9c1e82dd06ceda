package owners

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"keelson.dev/kit/follow"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/podgc/internal/podfeed"
	"keelson.dev/services/podgc/internal/resources"
)

const (
	// rediscovery is how often new resources are looked for where nothing says that there may be some.
	rediscovery = 30 * time.Second
	// soon is when they are looked for after a CustomResourceDefinition has changed, and settled when once more: the
	// apiserver may serve its kind a moment later.
	soon, settled = 100 * time.Millisecond, time.Second
)

// definitions are the resource whose objects make other resources come and go.
var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

type queue = workqueue.TypedRateLimitingInterface[types.UID]

// ignored resources never own or depend, and change all the time.
var ignored = map[schema.GroupResource]bool{
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,
}

// watcher keeps one metadata informer per resource that can be deleted, and the graph up to date with them. It
// implements source.TypedSyncingSource.
type watcher struct {
	client metadata.Interface
	server resources.Lister
	// pods is the service's one watch of Pods, which all its collectors share.
	pods   func(context.Context, podfeed.Follower) (cache.InformerSynced, func(), error)
	failed func(error)
	// observe and remove change the graph and return what to look at again.
	observe func(*Object) []types.UID
	remove  func(types.UID) []types.UID
	// redefined holds a token when a CustomResourceDefinition has changed since resources were last looked for.
	redefined wakeup.Signal

	mu       sync.Mutex // guards what follows
	set      *resources.Set
	informed map[schema.GroupVersionResource]informed
}

// informed is one followed informer.
type informed struct {
	synced cache.InformerSynced
	stop   context.CancelFunc
}

// Start implements source.TypedSource: it watches what is served now and goes on looking for more until ctx ends.
func (w *watcher) Start(ctx context.Context, q queue) error {
	if err := w.refresh(ctx, q); err != nil {
		return err
	}
	go w.rediscover(ctx, func() {
		if err := w.refresh(ctx, q); err != nil {
			w.failed(err)
		}
	})
	return nil
}

// rediscover calls look now and then, and soon after definitions have changed, until ctx ends.
func (w *watcher) rediscover(ctx context.Context, look func()) {
	next := time.NewTimer(rediscovery)
	defer next.Stop()
	expected := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.redefined:
			if !expected {
				next.Reset(soon)
			}
			expected = true
		case <-next.C:
			look()
			if expected {
				next.Reset(settled)
			} else {
				next.Reset(rediscovery)
			}
			expected = false
		}
	}
}

// redefine says that a definition has changed.
func (w *watcher) redefine() {
	w.redefined.Send()
}

// WaitForSync implements source.TypedSyncingSource. Nothing may be decided before every resource has been listed: an
// owner whose dependents are not known yet would be let go too early.
func (w *watcher) WaitForSync(ctx context.Context) error {
	w.mu.Lock()
	var synced []cache.InformerSynced
	for _, i := range w.informed {
		synced = append(synced, i.synced)
	}
	w.mu.Unlock()
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("listing all resources: %w", ctx.Err())
	}
	return nil
}

// resourceOf returns the resource that serves the kind.
func (w *watcher) resourceOf(kind schema.GroupKind) (resources.Resource, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.set.OfKind(kind)
}

// refresh starts informers for new resources and ends those of resources that are no longer served. A group that
// could not be read keeps its informers.
func (w *watcher) refresh(ctx context.Context, q queue) error {
	set, err := resources.Discover(w.server)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set = set
	served := map[schema.GroupVersionResource]bool{}
	for _, r := range set.List {
		if ignored[r.GroupResource()] || !r.Can("delete", "list", "watch") {
			continue
		}
		served[r.GroupVersionResource] = true
		if _, running := w.informed[r.GroupVersionResource]; running {
			continue
		}
		started, err := w.inform(ctx, r, q)
		if err != nil {
			return err
		}
		w.informed[r.GroupVersionResource] = started
	}
	for resource, i := range w.informed {
		if !served[resource] && len(set.Failed) == 0 {
			i.stop()
			delete(w.informed, resource)
		}
	}
	return nil
}

// inform follows one resource until ctx ends.
func (w *watcher) inform(ctx context.Context, r resources.Resource, q queue) (informed, error) {
	if r.Group == "" && r.Resource == "pods" {
		return w.followPods(ctx, r, q)
	}
	informer := metadatainformer.NewFilteredMetadataInformer(w.client, r.GroupVersionResource, metav1.NamespaceAll, 0,
		cache.Indexers{}, nil).Informer()
	if err := informer.SetTransform(trim); err != nil {
		return informed{}, fmt.Errorf("watching %s: %w", r.GroupResource(), err)
	}
	registration, err := informer.AddEventHandler(w.handler(r, q))
	if err != nil {
		return informed{}, fmt.Errorf("watching %s: %w", r.GroupResource(), err)
	}
	running, stop := context.WithCancel(ctx)
	go informer.RunWithContext(running)
	return informed{synced: registration.HasSynced, stop: stop}, nil
}

// followPods brings the service's one feed of Pods into the graph until ctx ends.
func (w *watcher) followPods(ctx context.Context, r resources.Resource, q queue) (informed, error) {
	synced, leave, err := w.pods(ctx, func(last, now *corev1.Pod) {
		if now == nil {
			addAll(q, w.remove(last.UID))
			return
		}
		addAll(q, w.observe(objectOf(now, r)))
	})
	if err != nil {
		return informed{}, fmt.Errorf("watching %s: %w", r.GroupResource(), err)
	}
	following, stop := context.WithCancel(ctx)
	context.AfterFunc(following, leave)
	return informed{synced: synced, stop: stop}, nil
}

// handler brings what an informer says into the graph.
func (w *watcher) handler(r resources.Resource, q queue) cache.ResourceEventHandler {
	changed := func() {}
	if r.GroupResource() == definitions {
		changed = w.redefine
	}
	return follow.Handler(
		func(o metav1.Object) { addAll(q, w.observe(objectOf(o, r))); changed() },
		func(o metav1.Object) { addAll(q, w.remove(o.GetUID())); changed() })
}

func addAll(q queue, uids []types.UID) {
	for _, uid := range uids {
		q.Add(uid)
	}
}

// trim keeps of an object only what the graph needs, so that the cache stays small.
func trim(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers, DeletionTimestamp: m.DeletionTimestamp,
	}}, nil
}

func objectOf(m metav1.Object, r resources.Resource) *Object {
	return &Object{
		UID: m.GetUID(), Resource: r.GroupVersionResource, Kind: r.Kind, Namespace: m.GetNamespace(), Name: m.GetName(),
		ResourceVersion: m.GetResourceVersion(), Owners: m.GetOwnerReferences(), Finalizers: m.GetFinalizers(),
		Deleting: m.GetDeletionTimestamp() != nil,
	}
}
