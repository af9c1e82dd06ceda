package owners

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/services/podgc/internal/resources"
)

// Where another object took a name between two lists, the one that had it is gone: its dependents do not keep an
// owner that is no more. DEP-168
func TestAnObjectIsReplacedUnderItsName(t *testing.T) {
	var seen, gone []types.UID
	w := &watcher{
		observe: func(o *Object) []types.UID { seen = append(seen, o.UID); return nil },
		remove:  func(uid types.UID) []types.UID { gone = append(gone, uid); return nil },
	}
	of := func(uid types.UID) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid}}
	}
	check := func(what string, wantSeen, wantGone int) {
		t.Helper()
		if len(seen) != wantSeen || len(gone) != wantGone {
			t.Errorf("%s: seen %v, gone %v", what, seen, gone)
		}
	}
	informer := w.handler(resources.Resource{}, nil)
	informer.OnAdd(of("a"), true)
	informer.OnUpdate(of("a"), of("a"))
	check("the same object", 2, 0)
	informer.OnUpdate(of("a"), of("b"))
	if check("another of the name", 3, 1); len(gone) == 1 && gone[0] != "a" {
		t.Errorf("%v is gone, want a", gone)
	}
	informer.OnDelete(cache.DeletedFinalStateUnknown{Obj: of("b")})
	check("gone unseen", 3, 2)
}

// Resources are looked for every 30 s, and soon after a definition has changed: however many have, twice.
func TestKindsAreLookedForWhenDefinitionsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{redefined: make(chan struct{}, 1), observe: func(*Object) []types.UID { return nil },
			remove: func(types.UID) []types.UID { return nil }}
		ctx, end := context.WithCancel(t.Context())
		var looks atomic.Int32
		go w.rediscover(ctx, func() { looks.Add(1) })
		informer := w.handler(resources.Resource{GroupVersionResource: definitions.WithVersion("v1")}, nil)
		definition := &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", UID: "u"}}
		for i, row := range []struct {
			change func()
			pause  time.Duration
			want   int32
		}{
			{nil, 29 * time.Second, 0}, {nil, 2 * time.Second, 1}, {nil, 30 * time.Second, 2},
			{func() { informer.OnAdd(definition, false) }, soon - 1, 2}, {nil, 2, 3}, {nil, settled, 4},
			{nil, 28 * time.Second, 4},
			{func() { informer.OnUpdate(definition, definition) }, time.Millisecond, 4},
			{func() { informer.OnDelete(definition) }, soon, 5}, {nil, settled, 6}, {nil, 29 * time.Second, 6},
			{func() { w.handler(resources.Resource{}, nil).OnAdd(definition, false) }, soon, 6},
		} {
			if row.change != nil {
				row.change()
			}
			time.Sleep(row.pause)
			synctest.Wait()
			if got := looks.Load(); got != row.want {
				t.Errorf("row %d: looked %d times, want %d", i, got, row.want)
			}
		}
		end()
	})
}
