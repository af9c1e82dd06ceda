package watchstream

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"
)

// sharedMap is a ConfigMap as the cache sends it to all watchers.
type sharedMap struct{ *corev1.ConfigMap }

func (sharedMap) CacheEncode(runtime.Identifier, func(runtime.Object, io.Writer) error, io.Writer) error {
	return nil
}

func (m sharedMap) GetObject() runtime.Object { return m.ConfigMap }

func live(version int) watch.Event {
	return watch.Event{Type: watch.Modified, Object: sharedMap{own(version).Object.(*corev1.ConfigMap)}}
}

func own(version int) watch.Event {
	return watch.Event{Type: watch.Added,
		Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version)}}}
}

// cache gives each watch a channel of its own, which the test fills, and remembers where the watches began.
type cache struct {
	storage.Interface
	sources []*watch.FakeWatcher
	began   []string
	err     error
}

func (c *cache) Watch(_ context.Context, _ string, opts storage.ListOptions) (watch.Interface, error) {
	if c.err != nil {
		return nil, c.err
	}
	began := opts.ResourceVersion
	if ptr.Deref(opts.SendInitialEvents, false) {
		began += " with the state"
	}
	c.sources, c.began = append(c.sources, watch.NewFake()), append(c.began, began)
	return c.sources[len(c.sources)-1], nil
}

func start(t *testing.T, c *cache, opts storage.ListOptions) watch.Interface {
	t.Helper()
	opts.Recursive = true
	w, err := New(c, schema.GroupResource{Resource: t.Name()}).Watch(t.Context(), "/", opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// versions reads what is there and whether the watch has ended.
func versions(w watch.Interface) (seen []int, ended bool) {
	for {
		synctest.Wait()
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				return seen, true
			}
			version := -1
			switch object := event.Object.(type) {
			case sharedMap:
				version, _ = strconv.Atoi(object.ResourceVersion)
			case *corev1.ConfigMap:
				version, _ = strconv.Atoi(object.ResourceVersion)
			}
			seen = append(seen, version)
		default:
			return seen, false
		}
	}
}

// count returns what has been counted in this run of the test: the next run starts again.
func count(t *testing.T, counter *metrics.CounterVec) float64 {
	t.Helper()
	t.Cleanup(func() { counter.Delete(map[string]string{"group": "", "resource": t.Name()}) })
	value, err := testutil.GetCounterMetricValue(counter.WithLabelValues("", t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func sequence(from, to int) string {
	var all []int
	for v := from; v <= to; v++ {
		all = append(all, v)
	}
	return fmt.Sprint(all)
}

// A client that reads nothing during a burst of 4,000 changes has lost nothing afterwards; one that leaves 5,000 is
// ended behind what was queued, and that is counted.
func TestBurst(t *testing.T) {
	for _, row := range []struct {
		changes int
		ended   bool
	}{{4000, false}, {5000, true}} {
		t.Run(strconv.Itoa(row.changes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cache{}
				w := start(t, c, storage.ListOptions{ResourceVersion: "1"})
				defer w.Stop()
				for v := 1; v <= row.changes; v++ {
					if c.sources[0].IsStopped() {
						break
					}
					event := live(v)
					c.sources[0].Action(event.Type, event.Object)
					synctest.Wait()
				}
				seen, over := versions(w)
				if over != row.ended || count(t, ended) != map[bool]float64{true: 1}[row.ended] {
					t.Errorf("ended: %v, want %v; counted %v", over, row.ended, count(t, ended))
				}
				if got := fmt.Sprint(seen); got != sequence(1, len(seen)) || !row.ended && len(seen) != row.changes ||
					len(seen) < 4000 {
					t.Errorf("%d of %d events came, or not in their order", len(seen), row.changes)
				}
				if len(c.sources) != 1 {
					t.Errorf("the watch was resumed %d times", len(c.sources)-1)
				}
			})
		})
	}
}

// breaks is a watch that cannot tell what happens.
type breaks struct{ *watch.FakeWatcher }

func (breaks) ResultChan() <-chan watch.Event { panic("no such case") }

// A watch that breaks off ends for its client, as one does whose cache has ended it.
func TestWatchBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFake()
		q := newQueue(&resumable{source: breaks{source}})
		if _, ended := versions(q); !ended || !source.IsStopped() {
			t.Error("the client still waits, or the cache still sends")
		}
	})
}

// What only one client gets is not gathered: the cache waits for the client.
func TestStateIsNotGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cache{}
		w := start(t, c, storage.ListOptions{ResourceVersion: "0"})
		defer w.Stop()
		sent := 0
		go func() {
			for v := range 10000 {
				event := own(v + 1)
				c.sources[0].Action(event.Type, event.Object)
				sent++
			}
		}()
		synctest.Wait()
		if sent > 300 {
			t.Errorf("%d objects wait for one client", sent)
		}
		if seen, ended := versions(w); ended || fmt.Sprint(seen) != sequence(1, 10000) {
			t.Errorf("%d of 10000 objects came, ended: %v", len(seen), ended)
		}
	})
}

// Where the cache ends a watch, it goes on behind the last event, if it is known which that is.
func TestResumption(t *testing.T) {
	bookmark := watch.Event{Type: watch.Bookmark, Object: own(7).Object}
	gone := watch.Event{Type: watch.Error, Object: &metav1.Status{}}
	rows := map[string]struct {
		from  string
		state *bool
		sent  []watch.Event
		err   error
		began string
	}{
		"behind a change":                 {from: "5", sent: []watch.Event{live(6), live(7)}, began: "[5 7]"},
		"behind history":                  {from: "5", sent: []watch.Event{own(6)}, began: "[5 6]"},
		"behind a bookmark":               {from: "5", sent: []watch.Event{live(6), bookmark}, began: "[5 7]"},
		"without any event":               {from: "5", began: "[5]"},
		"in the middle of the state":      {from: "0", sent: []watch.Event{own(6)}, began: "[0]"},
		"behind the state":                {from: "0", sent: []watch.Event{own(6), live(7)}, began: "[0 7]"},
		"in the state, without a version": {sent: []watch.Event{own(6)}, began: "[]"},
		"in the middle of a watch list": {state: ptr.To(true), sent: []watch.Event{own(6)},
			began: "[ with the state]"},
		"in a watch list from a version": {from: "5", state: ptr.To(true), sent: []watch.Event{own(6)},
			began: "[5 with the state]"},
		"behind the bookmark of the state": {state: ptr.To(true), sent: []watch.Event{own(6), bookmark},
			began: "[ with the state 7]"},
		"behind an error": {from: "5", sent: []watch.Event{live(6), gone}, began: "[5]"},
		"not while the cache is down": {from: "5", sent: []watch.Event{live(6)}, began: "[5]",
			err: apierrors.NewTooManyRequests("starting", 1)},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cache{}
				w := start(t, c, storage.ListOptions{ResourceVersion: row.from, SendInitialEvents: row.state})
				defer w.Stop()
				for _, event := range row.sent {
					c.sources[0].Action(event.Type, event.Object)
				}
				c.err = row.err
				c.sources[0].Stop()
				seen, over := versions(w)
				if len(seen) != len(row.sent) {
					t.Errorf("%d events of %d came", len(seen), len(row.sent))
				}
				goesOn := len(c.sources) == 2
				if over == goesOn || fmt.Sprint(c.began) != row.began {
					t.Errorf("ended: %v; the watches began at %v, want %s", over, c.began, row.began)
				}
				if got := count(t, resumed); got != map[bool]float64{true: 1}[goesOn] {
					t.Errorf("%v resumptions were counted", got)
				}
				if !goesOn {
					return
				}
				next := live(8)
				c.sources[1].Action(next.Type, next.Object)
				if seen, ended := versions(w); ended || fmt.Sprint(seen) != "[8]" {
					t.Errorf("afterwards %v came, ended: %v", seen, ended)
				}
			})
		})
	}
}

// A watch whose client is gone is not resumed.
func TestClientIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cache{}
		ctx, cancel := context.WithCancel(t.Context())
		w, err := New(c, schema.GroupResource{}).Watch(ctx, "/", storage.ListOptions{ResourceVersion: "5",
			Recursive: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		event := live(6)
		c.sources[0].Action(event.Type, event.Object)
		cancel()
		c.sources[0].Stop()
		if _, over := versions(w); !over || len(c.sources) != 1 {
			t.Errorf("ended: %v, after %d resumptions", over, len(c.sources)-1)
		}
	})
}

// A stop reaches the watch that is under way, and ends what waits.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cache{}
		w := start(t, c, storage.ListOptions{ResourceVersion: "5"})
		event := live(6)
		c.sources[0].Action(event.Type, event.Object)
		c.sources[0].Stop()
		synctest.Wait()
		w.Stop()
		w.Stop()
		synctest.Wait()
		if _, ended := versions(w); !ended || !c.sources[1].IsStopped() {
			t.Errorf("ended: %v, the cache was told: %v", ended, c.sources[1].IsStopped())
		}
	})
}

// A watch of one object is the cache's own.
func TestOneObject(t *testing.T) {
	c := &cache{}
	w, err := New(c, schema.GroupResource{}).Watch(t.Context(), "/a", storage.ListOptions{})
	if err != nil || w != watch.Interface(c.sources[0]) {
		t.Errorf("%T, %v", w, err)
	}
}
