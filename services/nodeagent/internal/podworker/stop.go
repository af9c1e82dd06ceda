package podworker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/hooks"
	"keelson.dev/services/nodeagent/internal/lifecycle"
)

// signalsAtOnce is how many signals may be under way at once to the containers of one Pod; signalTime and killTime
// are how long one counts as such. A shim that has to send dozens at a time falls behind with the exits of its
// helpers, answers no call and loses minutes.
const (
	signalsAtOnce = 8
	signalTime    = 500 * time.Millisecond
	killTime      = 5 * time.Second
)

// patience is how long after the deadline the runtime kills the instance if the agent does not.
const patience = time.Minute

// stop ends one instance: it runs the preStop hook, at most until the deadline, sends the stop signal, and kills
// the instance at the deadline, but never sooner than lifecycle.MinimumGrace after the signal. The deadline may
// move forward at any time.
type stop struct {
	*job
	mu       sync.Mutex // guards deadline
	deadline time.Time
	moved    wakeup.Signal
}

func newStop(j *job) *stop {
	return &stop{job: j, deadline: j.action.Deadline, moved: wakeup.New()}
}

// shorten moves the deadline forward.
func (s *stop) shorten(deadline time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if deadline.Before(s.deadline) {
		s.deadline = deadline
		s.moved.Send()
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
	if s.action.Force { // a call to the runtime has failed: the time is over, so the processes are killed without it
		if err := s.config.Steps.Kill(s.pod, s.action.ID); err != nil {
			s.config.Log.Warn("killing the container's processes failed", zap.Stringer("operation", s.action.Key),
				zap.Error(err))
		}
	}
	err := s.signal(ctx)
	return outcome{err: err, reason: reasonFailedKillPod, observe: true}
}

// signal sends the stop signal, waits until the instance has ended or its time is over, and then kills it.
func (s *stop) signal(ctx context.Context) error {
	for {
		over := s.enter(ctx, signalTime)
		after := lifecycle.KillAfter(time.Now(), s.end())
		call, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			defer over()
			ended <- s.stopContainer(call, after+patience)
		}()
		timer := time.NewTimer(after)
		select {
		case err := <-ended:
			timer.Stop()
			cancel()
			return err
		case <-s.moved: // call again: the signal was sent, the kill comes sooner
			timer.Stop()
			cancel()
			<-ended
		case <-timer.C:
			cancel()
			if err := <-ended; err == nil || ctx.Err() != nil {
				return err
			}
			defer s.enter(ctx, killTime)()
			return s.stopContainer(ctx, 0)
		}
	}
}

func (s *stop) stopContainer(ctx context.Context, timeout time.Duration) error {
	return failpoint.Around("nodeagent/container.stop", func() error {
		return s.config.Runtime.StopContainer(ctx,
			s.action.ID, timeout)
	})
}

// enter waits for its turn to send a signal. The turn ends when leave is called or atMost has passed.
func (s *stop) enter(ctx context.Context, atMost time.Duration) (leave func()) {
	select {
	case s.signals <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	once := sync.OnceFunc(func() { <-s.signals })
	timer := time.AfterFunc(atMost, once)
	return func() {
		timer.Stop()
		once()
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
