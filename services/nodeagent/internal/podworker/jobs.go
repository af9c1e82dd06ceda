package podworker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/hooks"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/steps"
)

// Reasons of events, as the kubelet names them.
const (
	reasonBackOff       = "BackOff"
	reasonCreated       = "Created"
	reasonStarted       = "Started"
	reasonFailed        = "Failed"
	reasonKilling       = "Killing"
	reasonFailedMount   = "FailedMount"
	reasonFailedSandbox = "FailedCreatePodSandBox"
	reasonFailedKillPod = "FailedKillPod"
	reasonUnhealthy     = "Unhealthy"

	reasonResizeStarted    = "ResizeStarted"
	reasonResizeCompleted  = "ResizeCompleted"
	reasonResizeDeferred   = "ResizeDeferred"
	reasonResizeInfeasible = "ResizeInfeasible"
	reasonResizeError      = "ResizeError"
)

// prepare sets up the step that the action names.
func (j *job) prepare(ctx context.Context) outcome {
	step, began, pod := j.step(), time.Now(), j.pod
	if step.AtMax {
		pod = j.atMax
	}
	refreshAt, err := step.SetUp(ctx, pod)
	reason := cmp.Or(step.Reason, reasonFailedMount)
	if err != nil && !errors.Is(err, context.Canceled) {
		j.warn(reason, "%s", err)
	}
	if err != nil {
		return outcome{err: err, reason: reason}
	}
	return outcome{remember: func(m *podstate.Memory) {
		m.Prepared[step.Name] = true
		delete(m.Released, step.Name)
		switch {
		case m.RefreshAt[step.Name].After(began): // a refresh requested meanwhile is still to be done
		case refreshAt.IsZero():
			delete(m.RefreshAt, step.Name)
		default:
			m.RefreshAt[step.Name] = refreshAt
		}
	}}
}

// release takes down the step that the action names.
func (j *job) release(ctx context.Context) outcome {
	step := j.step()
	if step.TearDown != nil {
		if err := step.TearDown(ctx, j.pod); err != nil {
			return outcome{err: err, reason: reasonFailedKillPod}
		}
	}
	return outcome{remember: func(m *podstate.Memory) {
		m.Released[step.Name] = true
		delete(m.Prepared, step.Name)
		delete(m.RefreshAt, step.Name)
	}}
}

// step returns the step that the action names.
func (j *job) step() steps.Step {
	i := slices.IndexFunc(j.config.Preparation, func(s steps.Step) bool { return s.Name == j.action.Object })
	return j.config.Preparation[i]
}

func (j *job) createSandbox(ctx context.Context) outcome {
	config, err := j.config.Steps.Sandbox(ctx, j.pod, j.action.Attempt)
	handler := ""
	if err == nil {
		handler, err = j.config.Steps.Handler(ctx, j.pod)
	}
	if err == nil {
		err = j.quietly(func() error {
			return failpoint.Around("nodeagent/sandbox.create", func() error {
				// Not cancelled half-way: what was begun is finished and then observed.
				_, err := j.config.Runtime.RunSandbox(context.WithoutCancel(ctx), config, handler)
				return err
			})
		})
	}
	if !errors.Is(err, context.Canceled) {
		j.config.Observer.SandboxStarted(err)
	}
	if err != nil {
		j.warn(reasonFailedSandbox, "Failed to create pod sandbox: %s", err)
	}
	return outcome{err: err, reason: reasonFailedSandbox, observe: true}
}

func (j *job) stopSandbox(ctx context.Context) outcome {
	id := j.action.SandboxID
	err := j.quietly(func() error {
		return failpoint.Around("nodeagent/sandbox.stop", func() error { return j.config.Runtime.StopSandbox(ctx, id) })
	})
	if err != nil {
		j.warn(reasonFailedKillPod, "error killing pod: %s", err)
		return outcome{err: err, reason: reasonFailedKillPod, observe: true}
	}
	return outcome{observe: true, remember: func(m *podstate.Memory) { m.SandboxesStopped[id] = true }}
}

func (j *job) removeSandbox(ctx context.Context) outcome {
	err := j.quietly(func() error {
		if j.action.Force {
			j.end(ctx)
		}
		return failpoint.Around("nodeagent/sandbox.remove", func() error {
			return j.config.Runtime.RemoveSandbox(ctx,
				j.action.SandboxID)
		})
	})
	return j.removed("pod sandbox", err)
}

func (j *job) removeContainer(ctx context.Context) outcome {
	if j.action.Force {
		j.end(ctx)
	}
	err := failpoint.Around("nodeagent/container.remove", func() error {
		return j.config.Runtime.RemoveContainer(ctx,
			j.action.ID)
	})
	return j.removed("container", err)
}

// removed is the outcome of a removal of a sandbox or container. It records a failure, but not a cancellation.
func (j *job) removed(what string, err error) outcome {
	if err != nil && !errors.Is(err, context.Canceled) {
		j.warn(reasonFailedKillPod, "error removing %s: %s", what, err)
	}
	return outcome{err: err, reason: reasonFailedKillPod, observe: true}
}

// end makes sure that nothing still runs of a sandbox or container that could not be removed: an interrupted
// runtime may have a process that it does not know, or list one that does not exist. The removal that follows shows
// whether it has helped.
func (j *job) end(ctx context.Context) {
	var stopped, killed error
	if j.action.ID == "" {
		for i := range j.seen.Containers {
			killed = errors.Join(killed, j.config.Steps.Kill(j.pod, j.seen.Containers[i].ID))
		}
		stopped = j.config.Runtime.StopSandbox(ctx, j.action.SandboxID)
	} else {
		stopped = j.config.Runtime.StopContainer(ctx, j.action.ID, 0)
		killed = j.config.Steps.Kill(j.pod, j.action.ID)
	}
	if err := errors.Join(stopped, killed); err != nil {
		j.config.Log.Warn("ending what could not be removed failed", zap.Stringer("operation", j.action.Key),
			zap.Error(err))
	}
}

func (j *job) deletePod(ctx context.Context) outcome {
	if err := j.config.Statuses.Delete(ctx, j.pod); err != nil {
		return outcome{err: err, reason: reasonFailedKillPod}
	}
	j.pool.removeDeleted(j.pod.UID)
	return outcome{}
}

// startContainer starts an instance, reports the result unless it was called off, and runs the instance's postStart
// hook. It may be called off while it waits for the image or the hook, but not between creation and start; a recall
// lets it get its images first.
func (j *job) startContainer(ctx context.Context) outcome {
	e := j.action.Container
	id, out := j.runContainer(ctx)
	if out.err != nil {
		if !errors.Is(out.err, context.Canceled) {
			j.config.Observer.ContainerStarted(e.Kind, out.reason)
		}
		return out
	}
	j.config.Observer.ContainerStarted(e.Kind, "")
	if e.Spec.Lifecycle == nil || e.Spec.Lifecycle.PostStart == nil {
		return out
	}
	hooked := j.postStart(ctx, id)
	hooked.remember = both(out.remember, hooked.remember)
	return hooked
}

// runContainer gets the image, creates the instance and starts it. It returns the ID of an instance that it
// started.
func (j *job) runContainer(ctx context.Context) (id string, out outcome) {
	e := j.action.Container
	sandbox, err := j.config.Steps.Sandbox(ctx, j.pod, j.sandboxAttempt())
	if err != nil {
		return "", outcome{err: err, reason: podstate.CreateContainerConfigError}
	}
	image, err := j.config.Steps.Image(ctx, j.pod, e, sandbox)
	if err != nil {
		return "", outcome{err: err, reason: steps.ImageReason(err)}
	}
	volumes, err := j.config.Steps.VolumeImages(ctx, j.pod, e, sandbox)
	if err != nil {
		return "", outcome{err: err, reason: steps.ImageReason(err)}
	}
	if !j.commit() {
		return "", outcome{err: context.Canceled}
	}
	config, err := j.config.Steps.Container(ctx, steps.ContainerInput{
		Pod: j.pod, Entry: e, Attempt: j.action.Attempt, Image: image, VolumeImages: volumes, PodIPs: j.podIPs,
		TargetID: j.targetID()})
	if err != nil {
		j.warn(reasonFailed, "Error: %s", err)
		return "", outcome{err: err, reason: podstate.CreateContainerConfigError}
	}
	if ctx.Err() != nil {
		return "", outcome{err: ctx.Err()}
	}
	out = outcome{observe: true, remember: j.rememberStreak}
	out.err = j.quietly(func() error {
		// Not cancelled half-way: see createSandbox.
		firm := context.WithoutCancel(ctx)
		out.reason = podstate.CreateContainerError
		err := failpoint.Around("nodeagent/container.create", func() (err error) {
			id, err = j.config.Runtime.CreateContainer(firm, j.action.SandboxID, config, sandbox)
			return err
		})
		if err != nil {
			return err
		}
		j.note(reasonCreated, "Created container: %s", e.Spec.Name)
		out.reason = podstate.RunContainerError
		return failpoint.Around("nodeagent/container.start", func() error {
			return j.config.Runtime.StartContainer(firm,
				id)
		})
	})
	if out.err != nil {
		j.warn(reasonFailed, "Error: %s", out.err)
		return "", out
	}
	j.note(reasonStarted, "Started container %s", e.Spec.Name)
	return id, out
}

// rememberStreak notes that the container's back-off was reset at the attempt before this one.
func (j *job) rememberStreak(m *podstate.Memory) {
	if j.action.Streak != nil {
		m.Streaks[j.action.Container.Spec.Name] = *j.action.Streak
	}
}

func both(a, b func(*podstate.Memory)) func(*podstate.Memory) {
	return func(m *podstate.Memory) {
		a(m)
		if b != nil {
			b(m)
		}
	}
}

func (j *job) sandboxAttempt() uint32 {
	for i := range j.seen.Sandboxes {
		if s := &j.seen.Sandboxes[i]; s.ID == j.action.SandboxID {
			return s.Attempt
		}
	}
	return 0
}

// targetID returns the instance whose processes an ephemeral container asks to see.
func (j *job) targetID() string {
	for i := range j.pod.Spec.EphemeralContainers {
		if c := &j.pod.Spec.EphemeralContainers[i]; c.Name == j.action.Container.Spec.Name &&
			j.action.Container.Kind == lifecycle.Ephemeral {
			if target := j.seen.Latest(c.TargetContainerName); target != nil && target.Live() {
				return target.ID
			}
		}
	}
	return ""
}

func (j *job) runPostStart(ctx context.Context) outcome { return j.postStart(ctx, j.action.ID) }

// postStart runs the hook. An instance whose hook fails is stopped; its restart policy decides what follows.
func (j *job) postStart(ctx context.Context, id string) outcome {
	c := j.action.Container.Spec
	err := j.config.Hooks.PostStart(ctx, hooks.Target{Container: c, ContainerID: id, IP: j.podIP})
	if errors.Is(err, context.Canceled) {
		return outcome{err: err, observe: true}
	}
	if err == nil {
		return outcome{observe: true, remember: func(m *podstate.Memory) { m.Hooked[id] = true }}
	}
	j.warn(hooks.ReasonPostStart, "%s", err)
	why := podstate.StopReason{Reason: hooks.ReasonPostStart, Message: "FailedPostStartHook",
		Grace: lifecycle.Grace(j.pod)}
	return outcome{observe: true, remember: func(m *podstate.Memory) {
		m.Hooked[id] = true
		m.MustStop[id] = why
	}}
}
