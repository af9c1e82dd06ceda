// Package status computes the API status of a Pod.
//
//keelson:decision
package status

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/qos"
)

// Input is all that a Pod's status depends on. Compute does not change it.
type Input struct {
	Now time.Time
	// Pod has the status that the API has; conditions of other writers and the times of unchanged ones are taken from
	// it.
	Pod      *corev1.Pod
	Observed *observed.Pod
	Plan     podstate.Plan
	// Probes are the probes' verdicts by instance ID.
	Probes map[string]podstate.Probe
	// Messages are the termination messages by instance ID.
	Messages map[string]string
	// Runtime is the scheme of container IDs, for example containerd.
	Runtime   string
	HostIPs   []string
	StartedAt time.Time
	Resize    Resize
	// RestartAll is the last restart of all containers; nil if there was none.
	RestartAll *podstate.RestartAll
	// Devices holds the status of containers' devices, by container name.
	Devices map[string][]corev1.ResourceStatus
}

// Compute returns the Pod's status.
func Compute(in Input) corev1.PodStatus {
	out := in.Pod.Status.DeepCopy()
	entries := lifecycle.Entries(in.Pod)
	c := computation{in: in, entries: entries,
		began: began(entries, in.Observed) || slices.ContainsFunc(in.Pod.Status.ContainerStatuses, hasStarted)}
	out.InitContainerStatuses = c.statuses(in.Pod.Status.InitContainerStatuses, lifecycle.Init, lifecycle.Sidecar)
	out.ContainerStatuses = c.statuses(in.Pod.Status.ContainerStatuses, lifecycle.Main)
	out.EphemeralContainerStatuses = c.statuses(in.Pod.Status.EphemeralContainerStatuses, lifecycle.Ephemeral)
	refused := c.refused(out)
	if c.stopped() && !refused {
		c.end(out)
	}
	out.QOSClass = qos.Class(in.Pod)
	out.ObservedGeneration = in.Pod.Generation
	c.addresses(out)
	c.whole(out)
	if out.StartTime == nil {
		start := seconds(in.StartedAt)
		out.StartTime = &start
	}
	if !podview.IsTerminal(in.Pod) {
		out.Phase = c.phase(out)
		out.Reason, out.Message = "", ""
		if in.Plan.Outcome != nil && in.Plan.Stopped {
			out.Reason, out.Message = in.Plan.Outcome.Reason, in.Plan.Outcome.Message
		}
	}
	c.conditions(out)
	if refused {
		out.InitContainerStatuses, out.ContainerStatuses, out.EphemeralContainerStatuses = nil, nil, nil
	}
	return *out
}

type computation struct {
	in      Input
	entries []lifecycle.Entry
	// began means that a main container has had an instance, so the Pod was initialized once.
	began bool
}

func began(entries []lifecycle.Entry, pod *observed.Pod) bool {
	for _, e := range entries {
		if c := pod.Latest(e.Spec.Name); e.Kind == lifecycle.Main && c != nil && c.State != observed.Created {
			return true
		}
	}
	return false
}

func (c *computation) addresses(out *corev1.PodStatus) {
	setHostIPs(out, c.in.HostIPs)
	sandbox := c.in.Observed.Sandbox()
	switch {
	case sandbox != nil && sandbox.Ready && c.in.Pod.Spec.HostNetwork:
		setPodIPs(out, c.in.HostIPs)
	case sandbox != nil && sandbox.Ready:
		setPodIPs(out, sandbox.IPs)
	case c.in.Plan.Goal == podstate.Run:
		setPodIPs(out, nil)
	}
}

func setHostIPs(out *corev1.PodStatus, ips []string) {
	out.HostIP, out.HostIPs = "", nil
	for i, ip := range ips {
		if i == 0 {
			out.HostIP = ip
		}
		out.HostIPs = append(out.HostIPs, corev1.HostIP{IP: ip})
	}
}

func setPodIPs(out *corev1.PodStatus, ips []string) {
	out.PodIP, out.PodIPs = "", nil
	for i, ip := range ips {
		if i == 0 {
			out.PodIP = ip
		}
		out.PodIPs = append(out.PodIPs, corev1.PodIP{IP: ip})
	}
}

// phase summarizes the containers. A terminal phase promises that no process of the Pod is left and none will
// start.
func (c *computation) phase(out *corev1.PodStatus) corev1.PodPhase {
	if c.stopped() {
		return c.terminalPhase(out)
	}
	if !c.initialized(out) {
		return corev1.PodPending
	}
	for i := range out.ContainerStatuses {
		s := &out.ContainerStatuses[i]
		if s.State.Waiting != nil && s.LastTerminationState.Terminated == nil {
			return corev1.PodPending
		}
	}
	return corev1.PodRunning
}

func (c *computation) terminalPhase(out *corev1.PodStatus) corev1.PodPhase {
	if c.in.Plan.Outcome != nil {
		return corev1.PodFailed
	}
	for i, e := range c.entries[:len(out.InitContainerStatuses)] {
		// The main containers may have succeeded before all containers restarted.
		if t := out.InitContainerStatuses[i].State.Terminated; e.Kind == lifecycle.Init && t != nil && t.ExitCode != 0 {
			return corev1.PodFailed
		}
	}
	mains := c.entries[len(out.InitContainerStatuses):]
	for i := range out.ContainerStatuses {
		s := &out.ContainerStatuses[i]
		if t := s.State.Terminated; t == nil || t.ExitCode != 0 || c.unfinished(mains[i], s) {
			return corev1.PodFailed
		}
	}
	return corev1.PodSucceeded
}

// seconds truncates a time to the API's precision, so that a written status equals the one that is computed again.
func seconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
