package storage

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	genericstorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/component-base/metrics/legacyregistry"

	"keelson.dev/services/apiserver/internal/objectsize"
	"keelson.dev/services/apiserver/internal/scheme"
	"keelson.dev/services/apiserver/internal/storage/encryption"
)

// configMaps is the storage of ConfigMaps on a store of its own.
func configMaps(t *testing.T) genericstorage.Interface {
	t.Helper()
	return configMapsOf(t, embedded(t), &objectsize.Book{})
}

func embedded(t *testing.T) *Embedded {
	t.Helper()
	e, err := StartEmbedded(t.Context(), filepath.Join(t.TempDir(), "data"), zap.NewNop())
	must(t, err)
	t.Cleanup(e.Close)
	return e
}

// configMapsOf is the storage of ConfigMaps on a store, which notes how large they are.
func configMapsOf(t *testing.T, e *Embedded, sizes *objectsize.Book) genericstorage.Interface {
	t.Helper()
	types, err := scheme.New()
	must(t, err)
	store := New(e.Client(), types, scheme.Codecs(types), sizes, &encryption.Providers{})
	t.Cleanup(store.Close)
	return storageOf(t, store, "configmaps")
}

// storageOf is the storage of a resource whose objects are ConfigMaps.
func storageOf(t *testing.T, store *Store, resource string) genericstorage.Interface {
	t.Helper()
	options, err := store.GetRESTOptions(schema.GroupResource{Resource: resource}, &corev1.ConfigMap{})
	must(t, err)
	storage, destroy, err := options.Decorator(options.StorageConfig, "/"+resource,
		func(o runtime.Object) (string, error) { return "/" + resource + "/" + o.(*corev1.ConfigMap).Name, nil },
		func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} },
		func(o runtime.Object) (labels.Set, fields.Set, error) {
			return nil, fields.Set{"metadata.name": o.(*corev1.ConfigMap).Name}, nil
		}, nil, nil)
	must(t, err)
	t.Cleanup(destroy)
	must(t, wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return storage.ReadinessCheck() == nil, nil }))
	return storage
}

func watchAll(t *testing.T, s genericstorage.Interface, version string) watch.Interface {
	t.Helper()
	w, err := s.Watch(t.Context(), "/configmaps", genericstorage.ListOptions{ResourceVersion: version, Recursive: true,
		Predicate: genericstorage.Everything})
	must(t, err)
	t.Cleanup(w.Stop)
	return w
}

// metric is the value for ConfigMaps of a counter or a gauge.
func metric(t *testing.T, name string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	must(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if family.GetName() == name && label.GetName() == "resource" && label.GetValue() == "configmaps" {
					return m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	return 0
}

// How large an object is, is known as soon as it is written, as it is changed, and after a start.
func TestSizesAreNoted(t *testing.T) {
	e, sizes := embedded(t), &objectsize.Book{}
	s := configMapsOf(t, e, sizes)
	of := func(name string) objectsize.Object {
		return objectsize.Object{Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "a", Name: name}
	}
	expect := func(sizes *objectsize.Book, name string, want int64) {
		t.Helper()
		must(t, wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
			func(context.Context) (bool, error) {
				got := sizes.OfObject(of(name))
				return got >= want && got <= want+1000 && (got > 0) == (want > 0), nil
			}))
	}
	create := func(name string, bytes int) {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
			Data: map[string]string{"a": strings.Repeat("x", bytes)}}
		must(t, s.Create(t.Context(), "/configmaps/"+name, c, nil, 0))
	}
	create("small", 1000)
	create("large", 500_000)
	create("shrinks", 100_000)
	expect(sizes, "large", 500_000)
	expect(sizes, "small", 0)
	expect(sizes, "shrinks", 100_000)
	must(t, s.GuaranteedUpdate(t.Context(), "/configmaps/shrinks", &corev1.ConfigMap{}, false, nil,
		genericstorage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) {
			o.(*corev1.ConfigMap).Data = nil
			return o, nil
		}), nil))
	expect(sizes, "shrinks", 0)
	again := &objectsize.Book{}
	configMapsOf(t, e, again)
	expect(again, "large", 500_000)
}

// A client that reads nothing while 4,000 objects are made is not ended, however small the buffers of the watch cache
// are; one that leaves more is, is counted, and loses nothing when it goes on from what it has seen last.
func TestAWatchOutlastsABurst(t *testing.T) {
	s := configMaps(t)
	create := func(from, to int) {
		for i := from; i < to; i++ {
			c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%05d", i)}}
			must(t, s.Create(context.Background(), "/configmaps/"+c.Name, c, nil, 0))
		}
	}
	create(0, 1)
	list := &corev1.ConfigMapList{}
	must(t, s.GetList(t.Context(), "/configmaps", genericstorage.ListOptions{Recursive: true,
		Predicate: genericstorage.Everything}, list))
	w := watchAll(t, s, list.ResourceVersion)
	const burst, beyond = 4000, 5000
	before := metric(t, "keelson_watches_ended_total")
	create(1, burst)
	seen, version := 1, ""
	read := func(until int) bool {
		for seen < until {
			select {
			case event, open := <-w.ResultChan():
				if !open {
					return false
				}
				object, err := meta.Accessor(event.Object)
				must(t, err)
				if want := fmt.Sprintf("c%05d", seen); object.GetName() != want {
					t.Fatalf("%s came, want %s", object.GetName(), want)
				}
				version = object.GetResourceVersion()
				seen++
			case <-time.After(time.Minute):
				t.Fatalf("no event after %d", seen)
			}
		}
		return true
	}
	if !read(burst) || metric(t, "keelson_watches_ended_total") != before {
		t.Fatalf("the watch ended after %d of %d events", seen, burst)
	}
	create(burst, burst+beyond)
	if read(burst + beyond) {
		t.Fatalf("a watch that was left with %d events did not end", beyond)
	}
	if got := metric(t, "keelson_watches_ended_total") - before; got != 1 {
		t.Errorf("%v ended watches were counted", got)
	}
	w = watchAll(t, s, version)
	if !read(burst + beyond) {
		t.Errorf("the next watch ended after %d events", seen)
	}
}
