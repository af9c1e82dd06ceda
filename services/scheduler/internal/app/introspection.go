package app

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/introspect"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/queue"
)

// depthPeriod is how often the depths of the queue are taken.
const depthPeriod = 2 * time.Second

// explainTimeout bounds how long an operator waits for an explanation.
const explainTimeout = 5 * time.Second

// observe shows the queue to operators until ctx ends.
func (l *loop) observe(ctx context.Context, state *introspect.State) {
	var depths atomic.Pointer[map[queue.Place]cycle.Depth]
	depths.Store(&map[queue.Place]cycle.Depth{})
	for _, place := range []queue.Place{queue.Active, queue.Backoff, queue.Held, queue.Unschedulable, cycle.Gated} {
		state.AddQueue(string(place), func() (int, time.Duration) {
			d := (*depths.Load())[place]
			if d.Oldest.IsZero() {
				return d.Pods, 0
			}
			return d.Pods, l.now().Sub(d.Oldest)
		})
	}
	state.AddExplainer("Pod", l.explain)
	state.AddExplainer("PodGroup", l.explainGroup)
	tick := time.NewTicker(depthPeriod)
	defer tick.Stop()
	for {
		if err := l.ask(ctx, func() {
			now := l.cycle.Depths()
			depths.Store(&now)
			for place, d := range now {
				l.metrics.depth(place, d.Pods)
			}
			l.metrics.moved(l.cycle.Moves())
		}); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// explain says where a Pod stands.
func (l *loop) explain(ctx context.Context, namespace, name string) (introspect.Explanation, bool) {
	return l.answer(ctx, l.cycle.Explain, namespace, name)
}

// explainGroup says where a PodGroup stands.
func (l *loop) explainGroup(ctx context.Context, namespace, name string) (introspect.Explanation, bool) {
	return l.answer(ctx, l.cycle.ExplainGroup, namespace, name)
}

// answer asks the Cycle where something stands.
func (l *loop) answer(ctx context.Context, ask func(types.NamespacedName) (cycle.Explanation, bool), namespace,
	name string) (introspect.Explanation, bool) {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	answers := make(chan introspect.Explanation, 1)
	err := l.ask(ctx, func() {
		if e, ok := ask(types.NamespacedName{Namespace: namespace, Name: name}); ok {
			answers <- explanation(e)
		}
	})
	if err != nil {
		return introspect.Explanation{Summary: "the scheduler is too busy to say: " + err.Error()}, true
	}
	select {
	case answer := <-answers:
		return answer, true
	default:
		return introspect.Explanation{}, false
	}
}

func explanation(e cycle.Explanation) introspect.Explanation {
	out := introspect.Explanation{Summary: e.Summary}
	for _, f := range e.Facts {
		out.Facts = append(out.Facts, introspect.Fact{Time: f.Time, Reason: f.Reason, Message: f.Message})
	}
	return out
}
