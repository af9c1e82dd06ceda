package app

import (
	"context"

	"go.uber.org/zap"

	"keelson.dev/kit/events"
	"keelson.dev/services/scheduler/internal/bind"
)

// bindSettled binds the Pods whose claims have their volumes, while bindings may start.
func (l *loop) bindSettled(ctx context.Context) {
	for l.inFlight < bind.MaxInFlight {
		s, ok := l.cycle.NextSettled(l.now())
		if !ok {
			return
		}
		if s.Err != nil {
			l.metrics.failed(s.Pod, l.now().Sub(s.Since))
			l.record(s.Pod, events.Warning("FailedScheduling", "binding volumes on node %s: %s", s.Node, s.Err))
			continue
		}
		l.inFlight++
		l.binder.Bind(ctx, bind.Binding{Pod: s.Pod, Node: s.Node, Decided: l.now(),
			Try: bind.Try{Began: s.Since, Attempt: s.Attempt, Arrived: s.Arrived}})
	}
}

// prepared takes what became of what claims get; it is called from any goroutine.
func (l *loop) prepared(p bind.Prepared) {
	l.do(func() {
		l.inFlight--
		for _, claim := range p.Claims {
			l.cycle.SetClaim(claim)
		}
		for _, volume := range p.Volumes {
			l.cycle.SetVolume(volume)
		}
		if p.Err == nil {
			l.cycle.Await(p.Pod.UID, l.now())
			return
		}
		l.metrics.failed(p.Pod, l.now().Sub(p.Decided))
		l.log.Info("claims of the pod were not written, trying again",
			zap.String("pod", p.Pod.Namespace+"/"+p.Pod.Name), zap.Error(p.Err))
		l.cycle.Failed(p.Pod.UID, l.now())
	})
}
