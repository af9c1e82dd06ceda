package rest_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericstorage "k8s.io/apiserver/pkg/storage"

	"keelson.dev/services/apiserver/internal/objectsize"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
	"keelson.dev/services/apiserver/internal/scheme"
	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/encryption"
)

// world is an etcd whose calls are counted and whose watches can be held back, so that every watch cache is stale.
type world struct {
	*storage.Store
	scheme *runtime.Scheme
	calls  atomic.Int64
	held   sync.RWMutex
}

func newWorld(t testing.TB, kinds ...rest.Entry) *world {
	t.Helper()
	etcd, err := storage.StartEmbedded(t.Context(), t.TempDir(), zap.NewNop())
	if err != nil {
		t.Fatalf("starting etcd: %v", err)
	}
	t.Cleanup(etcd.Close)
	s, err := scheme.New()
	if err != nil {
		t.Fatalf("making the scheme: %v", err)
	}
	for _, kind := range kinds {
		if err := kind.AddToScheme(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{scheme: s}
	client := etcd.Client()
	client.KV, client.Watcher = counted{client.KV, w}, delayed{client.Watcher, w}
	w.Store = storage.New(client, s, scheme.Codecs(s), &objectsize.Book{}, &encryption.Providers{})
	t.Cleanup(w.Close)
	return w
}

// counted counts the calls of a store that are about one key: what lists and counts goes on beside the test.
type counted struct {
	clientv3.KV
	*world
}

func (c counted) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if op := clientv3.OpGet(key, options...); op.RangeBytes() == nil {
		c.calls.Add(1)
	}
	return c.KV.Get(ctx, key, options...)
}

func (c counted) Txn(ctx context.Context) clientv3.Txn {
	c.calls.Add(1)
	return c.KV.Txn(ctx)
}

// delayed holds back the events of a store.
type delayed struct {
	clientv3.Watcher
	*world
}

func (d delayed) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	in, out := d.Watcher.Watch(ctx, key, options...), make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		for response := range in {
			d.held.RLock()
			d.held.RUnlock() //nolint:staticcheck // Nothing to guard: it waits while events are held back.
			select {
			case out <- response:
			case <-ctx.Done():
			}
		}
	}()
	return out
}

// opened is the open store of one kind.
type opened[O resource.Object] struct {
	*rest.Storage
	t     testing.TB
	world *world
}

func open[O resource.Object](t testing.TB, w *world, r resource.Resource[O]) opened[O] {
	t.Helper()
	s, err := rest.Serve(r).Open(rest.Options{Scheme: w.scheme, RESTOptions: w})
	if err != nil {
		t.Fatalf("opening %s: %v", r.Name, err)
	}
	t.Cleanup(s.Store.Destroy)
	ready := func(context.Context) (bool, error) { return s.ReadinessCheckFunc() == nil, nil }
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, ready); err != nil {
		t.Fatalf("waiting for the cache of %s: %v", r.Name, err)
	}
	return opened[O]{s, t, w}
}

func (o opened[O]) ctx() context.Context {
	return genericapirequest.WithNamespace(o.t.Context(), metav1.NamespaceDefault)
}

// put writes the object as it is, with marks that no request could set.
func (o opened[O]) put(obj O) O {
	o.t.Helper()
	obj = obj.DeepCopyObject().(O)
	obj.SetNamespace(metav1.NamespaceDefault)
	key, err := o.KeyFunc(o.ctx(), obj.GetName())
	if err != nil {
		o.t.Fatal(err)
	}
	out := o.New()
	if err := o.Store.Storage.Create(o.ctx(), key, obj, out, 0, false); err != nil {
		o.t.Fatalf("creating %s: %v", obj.GetName(), err)
	}
	return out.(O)
}

// change writes what the function makes of the object, past all rules.
func (o opened[O]) change(name string, to func(O)) O {
	o.t.Helper()
	key, err := o.KeyFunc(o.ctx(), name)
	if err != nil {
		o.t.Fatal(err)
	}
	out := o.New()
	update := genericstorage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		to(obj.(O))
		return obj, nil
	})
	if err := o.Store.Storage.GuaranteedUpdate(o.ctx(), key, out, false, nil, update, false, nil); err != nil {
		o.t.Fatalf("updating %s: %v", name, err)
	}
	return out.(O)
}

// read is the object in the store, nil if there is none.
func (o opened[O]) read(name string) runtime.Object {
	o.t.Helper()
	obj, err := o.Get(o.ctx(), name, &metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		o.t.Fatalf("reading %s: %v", name, err)
	}
	return obj
}

// settle waits until the cache has the object as it is given.
func (o opened[O]) settle(obj O) {
	o.t.Helper()
	if _, err := o.Get(o.ctx(), obj.GetName(),
		&metav1.GetOptions{ResourceVersion: obj.GetResourceVersion()}); err != nil {
		o.t.Fatalf("waiting for the cache: %v", err)
	}
}

// events are what a watch from the version has seen when an object named last has been added.
func (o opened[O]) events(from, last string) []watch.Event {
	o.t.Helper()
	watcher, err := o.Watch(o.ctx(), &internalversion.ListOptions{ResourceVersion: from})
	if err != nil {
		o.t.Fatalf("watching: %v", err)
	}
	defer watcher.Stop()
	end := o.New().(O)
	end.SetName(last)
	o.put(end)
	var seen []watch.Event
	for event := range watcher.ResultChan() {
		if shared, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = shared.GetObject()
		}
		if obj, ok := event.Object.(O); ok && obj.GetName() == last {
			return seen
		}
		seen = append(seen, event)
	}
	o.t.Fatal("the watch ended")
	return nil
}
