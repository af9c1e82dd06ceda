package podworker

import (
	"context"
	"sync"
	"time"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/hooks"
	"keelson.dev/services/nodeagent/internal/lifecycle"
)

// stop ends one instance: the preStop hook, at most until the deadline, then the stop signal, and the kill at the
// deadline, but never sooner than lifecycle.MinimumGrace after the signal. The deadline may move forward at any time.
type stop struct {
	*job
	mu       sync.Mutex // guards deadline
	deadline time.Time
	moved    chan struct{}
}

func newStop(j *job) *stop {
	return &stop{job: j, deadline: j.action.Deadline, moved: make(chan struct{}, 1)}
}

// shorten moves the deadline forward.
func (s *stop) shorten(deadline time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if deadline.Before(s.deadline) {
		s.deadline = deadline
		select {
		case s.moved <- struct{}{}:
		default:
		}
	}
}

func (s *stop) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadline
}

func (s *stop) run(ctx context.Context) outcome {
	s.note(reasonKilling, "%s", s.action.Message)
	if s.action.PreStop {
		s.hook(ctx)
	}
	for {
		call, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		after := lifecycle.KillAfter(time.Now(), s.end())
		go func() {
			ended <- failpoint.Around("nodeagent/container.stop", func() error { return s.config.Runtime.StopContainer(call, s.action.ID, after) })
		}()
		select {
		case err := <-ended:
			cancel()
			return outcome{err: err, reason: reasonFailedKillPod, observe: true}
		case <-s.moved: // ask again: the signal was sent, the kill comes sooner
			cancel()
			<-ended
		}
	}
}

// hook runs the preStop hook until it ends, the deadline comes or the operation is called off.
func (s *stop) hook(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	target := hooks.Target{Container: s.action.Container.Spec, ContainerID: s.action.ID, IP: s.podIP}
	ended := make(chan error, 1)
	go func() { ended <- s.config.Hooks.PreStop(ctx, target) }()
	for {
		timer := time.NewTimer(time.Until(s.end()))
		select {
		case err := <-ended:
			timer.Stop()
			if err != nil && ctx.Err() == nil {
				s.warn(hooks.ReasonPreStop, "%s", err)
			}
			return
		case <-s.moved:
			timer.Stop()
		case <-timer.C:
			s.warn(hooks.ReasonPreStop, "PreStopHook did not end within the grace period")
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
