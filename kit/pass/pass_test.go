package pass

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type gate bool

func (g gate) IsOpen(owner types.UID) bool { return bool(g) && owner == "uid" }

func TestReconcile(t *testing.T) {
	refused := errors.New("refused")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", refused)
	for _, c := range []struct {
		name            string
		pod             string
		gate            Gate
		unneeded        bool
		observed, apply error
		steps           string
		recheck         time.Duration
		after           time.Duration
		err             error
	}{
		{name: "all steps", pod: "a", gate: gate(true), steps: "observe decide apply after", after: time.Hour},
		{name: "without a gate", pod: "a", steps: "observe decide apply after", after: time.Hour},
		{name: "an object that is gone", pod: "b"},
		{name: "own writes are not seen yet", pod: "a", gate: gate(false), after: time.Second},
		{name: "nothing to decide", pod: "a", unneeded: true, steps: "observe"},
		{name: "observing fails", pod: "a", observed: refused, steps: "observe", err: refused},
		{name: "applying fails", pod: "a", apply: refused, steps: "observe decide apply", err: refused},
		{name: "somebody was faster", pod: "a", apply: fmt.Errorf("writing: %w", conflict),
			steps: "observe decide apply", after: time.Second},
		{name: "the picture was old", pod: "a", apply: ErrStale, steps: "observe decide apply", after: time.Second},
		{name: "it looks again when it says", pod: "a", apply: ErrStale, recheck: time.Minute,
			steps: "observe decide apply", after: time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps := ""
			step := func(name string) {
				if steps != "" {
					steps += " "
				}
				steps += name
			}
			s := &Steps[*corev1.Pod, string, int]{
				Reader: fake.NewClientBuilder().WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n",
					Name: "a", UID: "uid"}}).Build(),
				New: func() *corev1.Pod { return &corev1.Pod{} }, Gate: c.gate, Recheck: c.recheck,
				Observe: func(_ context.Context, p *corev1.Pod) (string, bool, error) {
					step("observe")
					return p.Name, !c.unneeded, c.observed
				},
				Decide: func(in string) int { step("decide"); return len(in) },
				Apply: func(_ context.Context, in string, plan int) error {
					step("apply")
					if in != "a" || plan != 1 {
						t.Errorf("applies %d of %q", plan, in)
					}
					return c.apply
				},
				After: func(string, int) time.Duration { step("after"); return time.Hour },
			}
			result, err := s.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "n",
				Name: c.pod}})
			if steps != c.steps || result.RequeueAfter != c.after || !errors.Is(err, c.err) {
				t.Errorf("%s, again in %v, %v; want %s, %v, %v", steps, result.RequeueAfter, err, c.steps, c.after,
					c.err)
			}
		})
	}
}

func TestUntil(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		wake time.Time
		want time.Duration
	}{
		"never": {time.Time{}, 0}, "later": {now.Add(time.Minute), time.Minute},
		"now": {now, time.Millisecond}, "before": {now.Add(-time.Minute), time.Millisecond},
	} {
		if got := Until(c.wake, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
