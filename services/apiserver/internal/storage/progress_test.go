package storage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	genericstorage "k8s.io/apiserver/pkg/storage"
	cachermetrics "k8s.io/apiserver/pkg/storage/cacher/metrics"

	"keelson.dev/services/apiserver/internal/objectsize"
	"keelson.dev/services/apiserver/internal/scheme"
	"keelson.dev/services/apiserver/internal/storage/encryption"
)

// asked counts requests for progress that reach etcd.
type asked struct {
	genericstorage.Interface

	times []time.Time
}

func (a *asked) RequestWatchProgress(context.Context) error {
	a.times = append(a.times, time.Now())
	return nil
}

// However many watch caches wait, etcd is asked ten times a second, since each answer goes to all of them; and whoever
// waits is answered as soon as if it waited alone.
func TestCachesAskForProgressTogether(t *testing.T) {
	for _, caches := range []int{1, 60} {
		synctest.Test(t, func(t *testing.T) {
			etcd, shared := &asked{}, &progress{now: time.Now}
			ctx, stop := context.WithCancel(t.Context())
			for i := range caches {
				store := progressing{Interface: etcd, progress: shared}
				go func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					for ctx.Err() == nil {
						if err := store.RequestWatchProgress(ctx); err != nil {
							t.Error(err)
						}
						time.Sleep(100 * time.Millisecond)
					}
				}()
			}
			time.Sleep(10*time.Second - 50*time.Millisecond)
			stop()
			synctest.Wait()
			if n := len(etcd.times); n < 99 || n > 100 {
				t.Errorf("%d caches: etcd was asked %d times in 10 s, want 100", caches, n)
			}
			for i := 1; i < len(etcd.times); i++ {
				if gap := etcd.times[i].Sub(etcd.times[i-1]); gap > 200*time.Millisecond {
					t.Errorf("%d caches: nobody asked for %v", caches, gap)
				}
			}
			time.Sleep(time.Second)
		})
	}
}

// revised is a store that is at a revision.
type revised struct {
	genericstorage.Interface

	revision uint64
}

func (r *revised) GetCurrentResourceVersion(context.Context) (uint64, error) { return r.revision, nil }

// Reads of the latest state have etcd asked at once, and once for all that begin within 2 ms; where nothing is
// written, no more.
func TestReadsAskForProgressAhead(t *testing.T) {
	for _, row := range []struct {
		name string
		// reads are when each begins, in ms, with the revision that it finds; want when etcd is asked.
		reads [][2]int
		want  []int
	}{
		{"one", [][2]int{{100, 5}}, []int{100}},
		{"nothing is written meanwhile", [][2]int{{100, 5}, {101, 5}, {500, 5}}, []int{100}},
		{"a write between two", [][2]int{{100, 5}, {500, 6}}, []int{100, 500}},
		{"a write between two that come together", [][2]int{{100, 5}, {101, 6}}, []int{100, 102}},
		{"just after the period", [][2]int{{100, 5}, {102, 6}, {104, 7}}, []int{100, 102, 104}},
		{"many at once", [][2]int{{100, 5}, {100, 6}, {101, 7}, {101, 8}, {103, 9}}, []int{100, 102, 104}},
		{"an older one", [][2]int{{100, 5}, {200, 4}}, []int{100}},
	} {
		synctest.Test(t, func(t *testing.T) {
			etcd := &revised{}
			begun := time.Now()
			var mu sync.Mutex
			var asked []int
			store := progressing{etcd, &progress{now: time.Now}, func() {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, int(time.Since(begun).Milliseconds()))
			}}
			for _, read := range row.reads {
				time.Sleep(time.Duration(read[0])*time.Millisecond - time.Since(begun))
				etcd.revision = uint64(read[1])
				if got, err := store.GetCurrentResourceVersion(t.Context()); err != nil || got != etcd.revision {
					t.Errorf("%s: %d, %v", row.name, got, err)
				}
				synctest.Wait()
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if !slices.Equal(asked, row.want) {
				t.Errorf("%s: etcd was asked at %v, want %v", row.name, asked, row.want)
			}
		})
	}
}

// A watch cache learns of a write elsewhere as soon as a client wants to read the latest state, before the read waits
// for it.
func TestACacheIsFreshAheadOfReads(t *testing.T) {
	cachermetrics.Register()
	e := embedded(t)
	s := configMapsOf(t, e, &objectsize.Book{})
	expect := func(revision uint64) {
		t.Helper()
		must(t, wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
			func(context.Context) (bool, error) {
				return metric(t, "apiserver_watch_cache_resource_version") == float64(revision), nil
			}))
	}
	for i := range 3 {
		name := fmt.Sprint("own-", i)
		own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
		must(t, s.Create(t.Context(), "/configmaps/"+name, own, nil, 0))
		put, err := e.Client().KV.Put(t.Context(), "/elsewhere", name)
		must(t, err)
		// What it sees of its own comes by itself.
		expect(uint64(put.Header.GetRevision() - 1))
		revision, err := s.GetCurrentResourceVersion(t.Context())
		must(t, err)
		expect(revision)
	}
}

// A client that watches a resource without a watch cache, and asks for no bookmarks, gets none, however often caches
// ask etcd for progress: it learns of a write, and of nothing before.
func TestClientsGetNoBookmarksOfCaches(t *testing.T) {
	e := embedded(t)
	types, err := scheme.New()
	must(t, err)
	store := New(e.Client(), types, scheme.Codecs(types), &objectsize.Book{}, &encryption.Providers{})
	t.Cleanup(store.Close)
	cached, direct := storageOf(t, store, "configmaps"), storageOf(t, store, "events")
	w, err := direct.Watch(t.Context(), "/events", genericstorage.ListOptions{Recursive: true, ResourceVersion: "1",
		Predicate: genericstorage.Everything})
	must(t, err)
	defer w.Stop()
	for range 20 { // each read of the latest state has etcd asked
		_, err := e.Client().KV.Put(t.Context(), "/elsewhere", "x")
		must(t, err)
		_, err = cached.GetCurrentResourceVersion(t.Context())
		must(t, err)
		time.Sleep(10 * time.Millisecond)
	}
	written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "written"}}
	must(t, direct.Create(t.Context(), "/events/written", written, nil, 0))
	if got := <-w.ResultChan(); got.Type != watch.Added {
		t.Errorf("the first that the watch is told is %s %+v", got.Type, got.Object)
	}
}
