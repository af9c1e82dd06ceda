package app

import (
	"context"

	"go.uber.org/zap"

	"keelson.dev/kit/events"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/evict"
)

// evict carries out how a Pod that fits nowhere comes to room.
func (l *loop) evict(ctx context.Context, v cycle.Verdict) {
	l.statuses.Drop(v.Pod.UID)
	l.evictor.Evict(ctx, evict.Eviction{Pod: v.Pod, Node: v.Nominated, Condition: v.Condition(),
		Victims: v.Plan.Victims})
}

// evicted takes what became of it; it is called from any goroutine.
func (l *loop) evicted(o evict.Outcome) {
	l.do(func() {
		for _, victim := range o.Evicted {
			l.recordAs(o.Pod.Spec.SchedulerName, victim,
				events.Normal("Preempted", "Preempted by pod %s on node %s", o.Pod.UID, o.Node))
		}
		l.metrics.preempted(len(o.Evicted), o.Err == nil)
		if o.Err != nil {
			l.log.Info("room for the pod was not made, trying again",
				zap.String("pod", o.Pod.Namespace+"/"+o.Pod.Name), zap.Error(o.Err))
		}
		l.cycle.Evicted(o.Pod.UID, o.Spared, o.Err, l.now())
	})
}
