package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// PodInitializing is why a main container waits while the init containers run, as the API names it.
const PodInitializing = "PodInitializing"

// Reasons why a container has ended, as the API names them.
const (
	reasonCompleted = "Completed"
	reasonError     = "Error"
)

// statuses returns the statuses of all containers of the kinds, in the order of the spec.
func (c *computation) statuses(old []corev1.ContainerStatus, kinds ...lifecycle.Kind) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, e := range c.entries {
		if !slices.Contains(kinds, e.Kind) {
			continue
		}
		i := slices.IndexFunc(old, func(s corev1.ContainerStatus) bool { return s.Name == e.Spec.Name })
		if i < 0 {
			out = append(out, c.container(e, nil))
		} else {
			out = append(out, c.container(e, &old[i]))
		}
	}
	return out
}

func (c *computation) container(e lifecycle.Entry, old *corev1.ContainerStatus) corev1.ContainerStatus {
	latest := c.in.Observed.Latest(e.Spec.Name)
	out := corev1.ContainerStatus{Name: e.Spec.Name, Image: e.Spec.Image}
	c.devices(&out, e, old)
	if latest == nil {
		c.missing(&out, e, old)
		return out
	}
	out.RestartCount = int32(latest.Attempt)
	out.ContainerID = c.id(latest)
	out.ImageID = latest.ImageID
	if latest.Image != "" {
		out.Image = latest.Image
	}
	c.resources(&out, e, latest)
	out.User = user(latest.User)
	out.VolumeMounts = mounts(e.Spec.VolumeMounts, latest)
	c.present(&out, e, latest)
	c.last(&out, latest, old)
	c.readiness(&out, e, latest)
	return out
}

// mounts returns the statuses of the mounts that a container asks for.
func mounts(asked []corev1.VolumeMount, latest *observed.Container) []corev1.VolumeMountStatus {
	var out []corev1.VolumeMountStatus
	for i := range asked {
		m := corev1.VolumeMountStatus{Name: asked[i].Name, MountPath: asked[i].MountPath, ReadOnly: asked[i].ReadOnly}
		at := func(has observed.Mount) bool { return has.ContainerPath == m.MountPath }
		has := observed.Mount{}
		if at := slices.IndexFunc(latest.Mounts, at); at >= 0 {
			has = latest.Mounts[at]
		}
		if m.ReadOnly {
			m.RecursiveReadOnly = ptr.To(corev1.RecursiveReadOnlyDisabled)
			if has.RecursiveReadOnly {
				m.RecursiveReadOnly = ptr.To(corev1.RecursiveReadOnlyEnabled)
			}
		}
		if has.Image != "" {
			m.VolumeStatus = &corev1.VolumeStatus{Image: &corev1.ImageVolumeStatus{ImageRef: has.Image}}
		}
		out = append(out, m)
	}
	return out
}

// devices sets the status of a container's devices. For a Pod that has ended it keeps the last report.
func (c *computation) devices(out *corev1.ContainerStatus, e lifecycle.Entry, old *corev1.ContainerStatus) {
	switch {
	case e.Kind != lifecycle.Main && e.Kind != lifecycle.Sidecar:
	case c.in.Plan.Stopped && old != nil:
		out.AllocatedResourcesStatus = old.AllocatedResourcesStatus
	default:
		out.AllocatedResourcesStatus = c.in.Devices[e.Spec.Name]
	}
}

// user returns nil if the runtime does not report the user.
func user(u *observed.User) *corev1.ContainerUser {
	if u == nil {
		return nil
	}
	return &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{
		UID: u.UID, GID: u.GID, SupplementalGroups: slices.Clone(u.SupplementalGroups)}}
}

// present sets the state of a container with an instance in the runtime.
func (c *computation) present(out *corev1.ContainerStatus, e lifecycle.Entry, latest *observed.Container) {
	waiting, waits := c.in.Plan.Waiting[e.Spec.Name]
	switch {
	case latest.State == observed.Running && !c.in.Plan.Hooking[latest.ID]:
		out.State.Running = &corev1.ContainerStateRunning{StartedAt: seconds(latest.StartedAt)}
	case latest.State == observed.Exited && waits:
		out.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting.Reason, Message: waiting.Message}
	case latest.State == observed.Exited:
		out.State.Terminated = c.terminated(latest)
	default:
		out.State.Waiting = c.defaultWaiting()
	}
}

// last sets how the previous instance ended.
func (c *computation) last(out *corev1.ContainerStatus, latest *observed.Container, old *corev1.ContainerStatus) {
	if out.State.Waiting != nil && latest.State == observed.Exited {
		out.LastTerminationState.Terminated = c.terminated(latest)
		return
	}
	for i := range c.in.Observed.Containers {
		prev := &c.in.Observed.Containers[i]
		if prev.Name == latest.Name && prev.Attempt < latest.Attempt && prev.State == observed.Exited {
			out.LastTerminationState.Terminated = c.terminated(prev)
			return
		}
	}
	if old == nil || latest.Attempt == 0 {
		return
	}
	// The runtime has dropped the earlier instance: the API still has how it ended.
	out.LastTerminationState = old.LastTerminationState
	if t := old.State.Terminated; t != nil && t.ContainerID != out.ContainerID {
		out.LastTerminationState.Terminated = t
	}
}

// missing sets the state of a container without an instance in the runtime: it has not been started, or its record
// is gone.
func (c *computation) missing(out *corev1.ContainerStatus, e lifecycle.Entry, old *corev1.ContainerStatus) {
	out.Started = started(e, false)
	if old != nil {
		out.RestartCount, out.ContainerID, out.ImageID = old.RestartCount, old.ContainerID, old.ImageID
		out.LastTerminationState = old.LastTerminationState
	}
	ran := old != nil && old.State.Running != nil
	switch {
	case old != nil && old.State.Terminated != nil:
		*out = *old.DeepCopy()
	case ran && c.in.Plan.Goal != podstate.Run:
		out.State.Terminated = unknownEnd(out.ContainerID)
	default:
		if ran {
			out.LastTerminationState.Terminated = unknownEnd(out.ContainerID)
		}
		out.State.Waiting = c.defaultWaiting()
		if w, ok := c.in.Plan.Waiting[e.Spec.Name]; ok {
			out.State.Waiting = &corev1.ContainerStateWaiting{Reason: w.Reason, Message: w.Message}
		}
	}
}

func (c *computation) defaultWaiting() *corev1.ContainerStateWaiting {
	if len(c.in.Pod.Spec.InitContainers) > 0 && !c.began {
		return &corev1.ContainerStateWaiting{Reason: PodInitializing}
	}
	return &corev1.ContainerStateWaiting{Reason: podstate.ContainerCreating}
}

func (c *computation) terminated(i *observed.Container) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode: i.ExitCode, Reason: i.Reason, Message: i.Message, ContainerID: c.id(i),
		StartedAt: seconds(i.StartedAt), FinishedAt: seconds(i.FinishedAt),
	}
	if c.in.RestartAll.Ended(i) {
		t.Reason, t.Message = podstate.RestartingAllContainers, c.in.RestartAll.String()
	}
	if t.Reason == "" {
		t.Reason = reasonError
		if i.ExitCode == 0 {
			t.Reason = reasonCompleted
		}
	}
	if m := c.in.Messages[i.ID]; m != "" {
		t.Message = m
	} else if m := c.reported(t.ContainerID); m != "" {
		t.Message = m
	}
	return t
}

// reported returns the API's message of an instance: the message's file may be gone by now.
func (c *computation) reported(id string) string {
	status := &c.in.Pod.Status
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses,
		status.EphemeralContainerStatuses} {
		for i := range list {
			for _, t := range []*corev1.ContainerStateTerminated{list[i].State.Terminated,
				list[i].LastTerminationState.Terminated} {
				if t != nil && t.ContainerID == id {
					return t.Message
				}
			}
		}
	}
	return ""
}

func (c *computation) id(i *observed.Container) string { return c.in.Runtime + "://" + i.ID }

// readiness sets ready and started. An instance without probe results counts as started or ready exactly if it has
// no such probe.
func (c *computation) readiness(out *corev1.ContainerStatus, e lifecycle.Entry, latest *observed.Container) {
	probe, known := c.in.Probes[latest.ID]
	if !known {
		probe = podstate.Probe{Started: e.Spec.StartupProbe == nil, Ready: e.Spec.ReadinessProbe == nil}
	}
	up := out.State.Running != nil && (probe.Started || e.Spec.StartupProbe == nil)
	out.Started = started(e, up)
	switch e.Kind {
	case lifecycle.Init:
		out.Ready = out.State.Terminated != nil && out.State.Terminated.ExitCode == 0
	case lifecycle.Ephemeral:
	default:
		out.Ready = up && (probe.Ready || e.Spec.ReadinessProbe == nil)
	}
}

// started returns nil for ephemeral containers.
func started(e lifecycle.Entry, up bool) *bool {
	if e.Kind == lifecycle.Ephemeral {
		return nil
	}
	return &up
}
