package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/introspect"
)

func newSetup(from cache.Cache) *Setup {
	return &Setup{Name: "test", Cache: from, Log: zap.NewNop(), state: introspect.NewState("test", "v0")}
}

// log is what happened, in order.
type log struct {
	mu   sync.Mutex // guards said
	said []string
}

func (l *log) add(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, what)
}

func (l *log) check(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.said, want) {
		t.Errorf("what happened: %q, want %q", l.said, want)
	}
	l.said = nil
}

// passes returns a reconciler that logs what it is called with.
func (l *log) passes() reconcile.TypedReconciler[string] {
	return reconcile.TypedFunc[string](func(_ context.Context, what string) (reconcile.Result, error) {
		l.add("pass " + what)
		return reconcile.Result{}, nil
	})
}

// A term begins with what is first, makes passes over what the sources and who has the queue ask for, with what is
// beside it, and ends with what is last.
func TestTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		var queue Queue[string]
		built, err := Build(newSetup(nil), 1, l.passes()).
			Queue(func(q Queue[string]) { queue = q }).
			Watch(source.TypedFunc[string](func(_ context.Context, q Queue[string]) error {
				q.Add("of a source")
				return nil
			})).
			First(func(context.Context) error { l.add("first"); return nil }).
			Beside(func(ctx context.Context) error { <-ctx.Done(); l.add("beside ends"); return nil }).
			Last(func() { l.add("last") }).
			Runnable()
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- built.Start(ctx) }()
		synctest.Wait()
		l.check(t, "first", "pass of a source")
		queue.Add("of its own accord")
		synctest.Wait()
		l.check(t, "pass of its own accord")
		end()
		if err := <-ended; err != nil {
			t.Errorf("it ends with %v", err)
		}
		l.check(t, "beside ends", "last")
	})
}

// What fails ends the term with its error, and what is last ends it in any case.
func TestTermFails(t *testing.T) {
	lost := errors.New("lost")
	fails := func(context.Context) error { return lost }
	for name, row := range map[string]struct {
		with func(*Builder[string]) *Builder[string]
		want []string
	}{
		"what is first": {func(b *Builder[string]) *Builder[string] { return b.First(fails) }, []string{"last"}},
		"what is beside": {func(b *Builder[string]) *Builder[string] { return b.Beside(fails) },
			[]string{"other ends", "last"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var l log
			b := Build(newSetup(nil), 1, l.passes()).
				Beside(func(ctx context.Context) error { <-ctx.Done(); l.add("other ends"); return nil }).
				Last(func() { l.add("last") })
			built, err := row.with(b).Runnable()
			if err != nil {
				t.Fatal(err)
			}
			if err := built.Start(t.Context()); !errors.Is(err, lost) {
				t.Errorf("%s fails, and the term ends with %v", name, err)
			}
			l.check(t, row.want...)
		})
	}
}

// The first error is returned, and what comes after it does no harm.
func TestWhatCannotBeBuilt(t *testing.T) {
	var l log
	s := newSetup(&informertest.FakeInformers{Error: errors.New("no informers")})
	store := s.Store(&corev1.Pod{})
	s.Check(errors.New("later"))
	if found := store.List(); len(found) > 0 {
		t.Errorf("the store of no informer has %v", found)
	}
	watched := source.TypedFunc[string](func(context.Context, Queue[string]) error { return nil })
	built, err := Build(s, 1, l.passes()).Watch(watched).Queue(func(Queue[string]) {}).Runnable()
	if built != nil || err == nil || !strings.Contains(err.Error(), "getting the informer of *v1.Pod: no informers") {
		t.Errorf("built %v with error %v", built, err)
	}
}

// Each gets a changed object as it was and as it is.
func TestEach(t *testing.T) {
	var l log
	pod := func(name string) *corev1.Pod { p := &corev1.Pod{}; p.Name = name; return p }
	each := Each(func(p *corev1.Pod, _ Queue[string]) { l.add(p.Name) })
	each.Create(t.Context(), event.TypedCreateEvent[*corev1.Pod]{Object: pod("new")}, nil)
	l.check(t, "new")
	each.Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: pod("was"), ObjectNew: pod("is")}, nil)
	l.check(t, "was", "is")
	each.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Pod]{Object: pod("gone")}, nil)
	l.check(t, "gone")
}

// Follow reports an object that was recreated under its name as gone, and the other as there.
func TestFollow(t *testing.T) {
	var l log
	pod := func(name, uid string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Name, p.UID = name, types.UID(uid)
		return p
	}
	say := func(what string) func(*corev1.Pod, Queue[string]) {
		return func(p *corev1.Pod, _ Queue[string]) { l.add(what + " " + p.Name) }
	}
	update := func(before, now *corev1.Pod) event.TypedUpdateEvent[*corev1.Pod] {
		return event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: before, ObjectNew: now}
	}
	follow := Follow(say("set"), say("gone"))
	follow.Create(t.Context(), event.TypedCreateEvent[*corev1.Pod]{Object: pod("a", "1")}, nil)
	l.check(t, "set a")
	follow.Update(t.Context(), update(pod("was", "1"), pod("is", "1")), nil)
	l.check(t, "set is")
	follow.Update(t.Context(), update(pod("was", "1"), pod("another", "2")), nil)
	l.check(t, "gone was", "set another")
	follow.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Pod]{Object: pod("a", "2")}, nil)
	l.check(t, "gone a")
}
