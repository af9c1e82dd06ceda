package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/resize"
)

// Resize is what is known of the resizes of a Pod, whose spec has the allocated size.
type Resize struct {
	// Pending is why the requested size is deferred or infeasible; nil if it is neither.
	Pending *podstate.Waiting
	// Actuation is how far the allocated size is actuated.
	Actuation resize.Actuation
	// Problem is why the actuation does not go on; empty if it does.
	Problem string
}

// resources sets a container's allocated resources, and those of its running instance.
func (c *computation) resources(out *corev1.ContainerStatus, e lifecycle.Entry, latest *observed.Container) {
	out.AllocatedResources = e.Spec.Resources.Requests.DeepCopy()
	out.Resources = e.Spec.Resources.DeepCopy()
	if !c.in.Plan.Resizing || latest.State != observed.Running {
		return
	}
	if has, known := c.in.Resize.Actuation.SizeOf(latest); known {
		out.Resources = has.Resources.DeepCopy()
	}
}

// whole sets the same for the Pod, if it has resources at the Pod level.
func (c *computation) whole(out *corev1.PodStatus) {
	out.Resources, out.AllocatedResources = nil, nil
	if !resource.IsPodLevelResourcesSet(c.in.Pod) {
		return
	}
	out.Resources = c.in.Pod.Spec.Resources.DeepCopy()
	if cgroup := c.in.Resize.Actuation.Cgroup; cgroup != nil && cgroup.Pod != nil {
		out.Resources = cgroup.Pod.DeepCopy()
	}
	out.AllocatedResources = resource.PodRequests(c.in.Pod, resource.PodResourcesOptions{ExcludeOverhead: true})
}

// resizeConditions returns the conditions of pending and current resizes. Completed ones have none.
func (c *computation) resizeConditions() []corev1.PodCondition {
	var out []corev1.PodCondition
	if p := c.in.Resize.Pending; p != nil && c.in.Plan.Goal == podstate.Run {
		out = append(out, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
			Reason: p.Reason, Message: p.Message, ObservedGeneration: c.in.Pod.Generation})
	}
	if !c.in.Plan.Resizing {
		return out
	}
	progress := corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue,
		ObservedGeneration: c.in.Pod.Generation}
	if before := podview.Condition(c.in.Pod, corev1.PodResizeInProgress); before != nil && len(out) > 0 {
		progress.ObservedGeneration = before.ObservedGeneration // the newer generation is the one that is pending
	}
	if c.in.Resize.Problem != "" {
		progress.Reason, progress.Message = corev1.PodReasonError, c.in.Resize.Problem
	}
	return append(out, progress)
}
