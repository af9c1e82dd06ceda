package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/election"
	"keelson.dev/kit/events"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/evict"
	"keelson.dev/services/scheduler/internal/extenderclient"
	"keelson.dev/services/scheduler/internal/feed"
)

const (
	// burst is how many Pods the loop decides on before it handles the changes that arrived meanwhile.
	burst = 64
	// statusRetry is the pause before a status that could not be written is looked at again.
	statusRetry = time.Second
)

// loop owns the Cycle: it alone calls it, with what others put into the incoming.
type loop struct {
	cycle    *cycle.Cycle
	binder   *bind.Binder
	statuses *bind.Statuses
	groups   *bind.GroupStatuses
	evictor  *evict.Evictor
	asker    *extenderclient.Asker
	record   func(*corev1.Pod, events.Event)
	recordAs func(profile string, about *corev1.Pod, e events.Event)
	log      *zap.Logger
	metrics  *metrics
	now      func() time.Time

	inFlight int
	answers  []answer // of extenders, in order

	mu       sync.Mutex
	incoming []message
	arrived  wakeup.Signal
}

// message is a change of the API or a call that needs the Cycle.
type message struct {
	change feed.Change
	call   func()
}

func (l *loop) deliver(c feed.Change) { l.put(message{change: c}) }

// do calls f in the loop's goroutine, after everything that was put before.
func (l *loop) do(f func()) { l.put(message{call: f}) }

// ask is do that waits for f, or for ctx.
func (l *loop) ask(ctx context.Context, f func()) error {
	done := make(chan struct{})
	l.do(func() {
		f()
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *loop) put(m message) {
	l.mu.Lock()
	l.incoming = append(l.incoming, m)
	l.mu.Unlock()
	l.arrived.Send()
}

// run handles messages and decides until ctx ends.
func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		handled := l.handle(ctx)
		decided := l.decide(ctx)
		l.publishGroups()
		if handled || decided == burst {
			continue
		}
		if at, ok := l.cycle.NextTime(l.now()); ok && l.inFlight < bind.MaxInFlight {
			timer.Reset(max(0, at.Sub(l.now())))
		} else {
			timer.Reset(time.Hour)
		}
		select {
		case <-ctx.Done():
		case <-l.arrived:
		case <-timer.C:
		}
	}
}

// handle takes in everything that arrived, until ctx ends, and reports whether there was anything.
func (l *loop) handle(ctx context.Context) bool {
	l.mu.Lock()
	batch := l.incoming
	l.incoming = nil
	l.mu.Unlock()
	var to feed.Cluster = withStatus{Cycle: l.cycle, loop: l}
	for _, m := range batch {
		if ctx.Err() != nil {
			return true
		}
		if m.call != nil {
			m.call()
			continue
		}
		m.change.Apply(to, l.now())
	}
	return len(batch) > 0
}

// decide places Pods while bindings may start, at most burst, and returns how many it tried.
func (l *loop) decide(ctx context.Context) int {
	l.bindSettled(ctx)
	l.takeAnswers(ctx)
	n := 0
	for ; n < burst && ctx.Err() == nil && l.inFlight < bind.MaxInFlight; n++ {
		start := l.now()
		v, ok := l.cycle.Next(start)
		if !ok {
			break
		}
		l.carryOut(ctx, v, start)
	}
	return n
}

// carryOut starts what follows from a verdict.
func (l *loop) carryOut(ctx context.Context, v cycle.Verdict, start time.Time) {
	if v.Question != nil {
		l.consult(ctx, v.Question)
		return
	}
	l.metrics.decided(&v, l.now().Sub(start))
	if v.Node == "" {
		l.refused(ctx, v)
		return
	}
	l.statuses.Drop(v.Pod.UID)
	l.inFlight++
	if len(v.Steps) > 0 {
		l.binder.Prepare(ctx, bind.Preparation{Pod: v.Pod, Node: v.Node, Steps: v.Steps, Decided: start},
			l.prepared)
		return
	}
	l.binder.Bind(ctx, bind.Binding{Pod: v.Pod, Node: v.Node, Decided: start,
		Try: bind.Try{Began: start, Attempt: v.Attempt, Arrived: v.Arrived}})
}

func (l *loop) refused(ctx context.Context, v cycle.Verdict) {
	l.record(v.Pod, events.Warning("FailedScheduling", "%s", v.Message()))
	if v.Untried > 0 {
		l.log.Info("preemption across nodes did not try all nodes, as too many pods count in their domains",
			zap.String("pod", v.Pod.Namespace+"/"+v.Pod.Name), zap.Int("untried", v.Untried))
	}
	if v.Plan != nil && len(v.Plan.Victims) > 0 {
		l.metrics.victimsChosen(len(v.Plan.Victims))
		l.evict(ctx, v)
		return
	}
	l.publish(v.Pod.UID)
}

// publish sees to it that a Pod without a node says why. A Pod whose status says so already is left alone.
func (l *loop) publish(uid types.UID) {
	if pod, condition, ok := l.cycle.Unschedulable(uid); ok {
		l.statuses.Set(pod, condition, l.cycle.Nominated(uid), l.now())
	}
}

// publishGroups sees to it that PodGroups say what became of them.
func (l *loop) publishGroups() {
	for _, news := range l.cycle.TakeGroupNews() {
		l.groups.Set(bind.GroupStatus{Group: news.Object, Pod: news.Pod, Conditions: news.Conditions}, l.now())
	}
}

// groupUnwritten takes the status of a PodGroup that could not be written; it is called from any goroutine.
func (l *loop) groupUnwritten(name types.NamespacedName, err error) {
	l.log.Debug("status of a pod group was not written", zap.Stringer("podGroup", name), zap.Error(err))
	time.AfterFunc(statusRetry, func() { l.do(func() { l.cycle.RecheckGroup(name) }) })
}

// bound takes the outcome of a binding; it is called from any goroutine.
func (l *loop) bound(o bind.Outcome) {
	l.do(func() {
		l.inFlight--
		l.metrics.bound(o, l.now())
		if o.Err == nil {
			l.record(o.Pod, events.Normal("Scheduled", "Successfully assigned %s/%s to %s", o.Pod.Namespace, o.Pod.Name,
				o.Node))
			return
		}
		l.log.Info("pod was not bound, trying again", zap.String("pod", o.Pod.Namespace+"/"+o.Pod.Name),
			zap.Error(o.Err))
		if !errors.Is(o.Err, election.ErrNotLeading) && !apierrors.IsNotFound(o.Err) {
			l.record(o.Pod, events.Warning("FailedScheduling", "%s", o.Err))
		}
		l.cycle.Failed(o.Pod.UID, l.now())
	})
}

// unwritten takes a status that could not be written; it is called from any goroutine.
func (l *loop) unwritten(pod *corev1.Pod, err error) {
	l.log.Debug("pod status was not written", zap.String("pod", pod.Namespace+"/"+pod.Name), zap.Error(err))
	time.AfterFunc(statusRetry, func() { l.do(func() { l.publish(pod.UID) }) })
}
