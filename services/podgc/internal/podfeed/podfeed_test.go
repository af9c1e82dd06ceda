package podfeed

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informers are a cache whose informer of Pods calls its handlers when the test says so.
type informers struct {
	cache.Cache
	cache.Informer

	handlers []toolscache.ResourceEventHandler
	synced   bool
}

// registration is that of a handler.
type registration struct {
	toolscache.ResourceEventHandlerRegistration

	of *informers
}

func (r registration) HasSynced() bool { return r.of.synced }

func (i *informers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return i, nil
}

func (i *informers) AddEventHandler(h toolscache.ResourceEventHandler) (
	toolscache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	return registration{of: i}, nil
}

func pod(uid types.UID, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid,
		ResourceVersion: version}}
}

// heard is what one follower was told, as "last>now".
type heard struct {
	what []string
	stop func()
}

func listen(t *testing.T, f *Feed, from *informers) *heard {
	t.Helper()
	text := func(p *corev1.Pod) string {
		if p == nil {
			return "-"
		}
		return string(p.UID) + p.ResourceVersion
	}
	h := &heard{}
	synced, stop, err := f.Follow(t.Context(), from, func(last, now *corev1.Pod) {
		h.what = append(h.what, text(last)+">"+text(now))
	})
	if err != nil || synced() != from.synced {
		t.Fatalf("synced %t, %v", synced(), err)
	}
	h.stop = stop
	return h
}

func (h *heard) check(t *testing.T, what string, want ...string) {
	t.Helper()
	slices.Sort(h.what)
	if !slices.Equal(h.what, want) {
		t.Errorf("%s: heard %v, want %v", what, h.what, want)
	}
	h.what = nil
}

// A follower hears of every Pod that there is and of each change, once and whenever it comes, and of none when it has
// left.
func TestFollow(t *testing.T) {
	f, from := New(), &informers{}
	early := listen(t, f, from)
	if len(from.handlers) != 1 {
		t.Fatalf("%d handlers", len(from.handlers))
	}
	informer := from.handlers[0]
	informer.OnAdd(pod("a", "1"), true)
	informer.OnAdd(pod("b", "2"), true)
	from.synced = true
	early.check(t, "Pods that there were", "->a1", "->b2")
	informer.OnUpdate(pod("a", "1"), pod("a", "3"))
	early.check(t, "a change", "a1>a3")

	late := listen(t, f, from)
	if len(from.handlers) != 1 {
		t.Errorf("%d handlers for two followers", len(from.handlers))
	}
	late.check(t, "what there is to one who comes later", "->a3", "->b2")
	informer.OnUpdate(pod("a", "3"), pod("c", "4"))
	early.check(t, "another of the name", "->c4", "a3>-")
	late.check(t, "another of the name", "->c4", "a3>-")
	informer.OnDelete(pod("b", "5"))
	informer.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: pod("c", "4")})
	informer.OnDelete(pod("c", "4"))
	early.check(t, "Pods that are gone, one of which nobody saw go", "b2>-", "c4>-")

	late.what = nil
	late.stop()
	informer.OnAdd(pod("d", "6"), false)
	early.check(t, "after another has left", "->d6")
	late.check(t, "after it has left")
}
