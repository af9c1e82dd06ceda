package status

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// Reasons of conditions, as the API names them.
const (
	reasonContainersNotReady       = "ContainersNotReady"
	reasonContainersNotInitialized = "ContainersNotInitialized"
	reasonReadinessGatesNotReady   = "ReadinessGatesNotReady"
	reasonPodCompleted             = "PodCompleted"
	reasonPodFailed                = "PodFailed"
	reasonTerminationByKubelet     = "TerminationByKubelet"
	reasonRestartAllStarted        = "RestartAllContainersStarted"
)

// owned are the condition types that the nodeagent writes, in the order in which they are shown.
var owned = []corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
	corev1.PodScheduled,
}

// ofResizes are the types that it writes while a resize is pending or in progress.
var ofResizes = []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress}

// conditions sets the nodeagent's own conditions and leaves all others alone.
func (c *computation) conditions(out *corev1.PodStatus) {
	containers := c.containersReady(out)
	computed := map[corev1.PodConditionType]corev1.PodCondition{
		corev1.PodReadyToStartContainers: c.readyToStart(),
		corev1.PodInitialized:            c.initializedCondition(out),
		corev1.ContainersReady:           containers,
		corev1.PodReady:                  c.ready(out, containers),
		corev1.PodScheduled:              {Status: corev1.ConditionTrue},
	}
	all := make([]corev1.PodCondition, 0, len(owned)+len(out.Conditions))
	for _, kind := range owned {
		condition := computed[kind]
		condition.Type = kind
		condition.ObservedGeneration = c.in.Pod.Generation
		all = append(all, c.follow(condition))
	}
	for _, condition := range c.resizeConditions() {
		all = append(all, c.follow(condition))
	}
	mayRestartAll := podview.MayRestartAll(&c.in.Pod.Spec)
	if mayRestartAll {
		all = append(all, c.follow(c.restartingAll(out)))
	}
	disrupted := c.in.Plan.Outcome != nil && c.in.Plan.Outcome.Disruption
	if disrupted {
		all = append(all, c.follow(c.disruption()))
	}
	for _, condition := range c.in.Pod.Status.Conditions {
		if disrupted && condition.Type == corev1.DisruptionTarget ||
			mayRestartAll && condition.Type == corev1.AllContainersRestarting {
			continue
		}
		if !slices.Contains(owned, condition.Type) && !slices.Contains(ofResizes, condition.Type) {
			all = append(all, condition)
		}
	}
	out.Conditions = all
}

// follow sets a condition's times.
func (c *computation) follow(condition corev1.PodCondition) corev1.PodCondition {
	condition, _ = conditions.Pod.Follow(c.in.Pod.Status.Conditions, condition, seconds(c.in.Now).Time)
	condition.LastProbeTime = metav1.Time{} // nothing probes a Pod as a whole
	return condition
}

// disruption is the condition of a Pod that the node ends for its own sake.
func (c *computation) disruption() corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: reasonTerminationByKubelet, Message: c.in.Plan.Outcome.Message,
		ObservedGeneration: c.in.Pod.Generation}
}

// restartingAll is true while all containers restart and those that ran have not all ended yet.
func (c *computation) restartingAll(out *corev1.PodStatus) corev1.PodCondition {
	condition := corev1.PodCondition{Type: corev1.AllContainersRestarting, Status: corev1.ConditionFalse,
		ObservedGeneration: c.in.Pod.Generation}
	switch {
	case out.Phase == corev1.PodSucceeded:
		condition.Reason = reasonPodCompleted
	case out.Phase == corev1.PodFailed:
		condition.Reason = reasonPodFailed
	case c.in.Plan.Restarting:
		condition.Status, condition.Reason = corev1.ConditionTrue, reasonRestartAllStarted
		if c.in.RestartAll != nil {
			condition.Message = c.in.RestartAll.String()
		}
	}
	return condition
}

// readyToStart is true if the sandbox exists and its network is configured.
func (c *computation) readyToStart() corev1.PodCondition {
	s := c.in.Observed.Sandbox()
	if s != nil && s.Ready && (c.in.Pod.Spec.HostNetwork || len(s.IPs) > 0) {
		return corev1.PodCondition{Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{Status: corev1.ConditionFalse}
}

func (c *computation) initializedCondition(out *corev1.PodStatus) corev1.PodCondition {
	if out.Phase == corev1.PodSucceeded {
		return corev1.PodCondition{Status: corev1.ConditionTrue, Reason: reasonPodCompleted}
	}
	if left := c.uninitialized(out); len(left) > 0 {
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: reasonContainersNotInitialized,
			Message: fmt.Sprintf("containers with incomplete status: %s", left)}
	}
	return corev1.PodCondition{Status: corev1.ConditionTrue}
}

func (c *computation) initialized(out *corev1.PodStatus) bool { return len(c.uninitialized(out)) == 0 }

// uninitialized lists the init containers that the main containers wait for: none once a main container has
// started, or if the Pod ends after it was initialized, since its sidecars end too.
func (c *computation) uninitialized(out *corev1.PodStatus) []string {
	was := podview.Condition(c.in.Pod, corev1.PodInitialized)
	if c.began || c.in.Plan.Goal != podstate.Run && was != nil && was.Status == corev1.ConditionTrue {
		return nil
	}
	var left []string
	i := 0
	for _, e := range c.entries {
		switch e.Kind {
		case lifecycle.Init:
			if !out.InitContainerStatuses[i].Ready {
				left = append(left, e.Spec.Name)
			}
			i++
		case lifecycle.Sidecar:
			if s := out.InitContainerStatuses[i].Started; s == nil || !*s {
				left = append(left, e.Spec.Name)
			}
			i++
		}
	}
	return left
}

// containersReady is true if all main containers and sidecars are ready.
func (c *computation) containersReady(out *corev1.PodStatus) corev1.PodCondition {
	switch out.Phase {
	case corev1.PodSucceeded:
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: reasonPodCompleted}
	case corev1.PodFailed:
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: reasonPodFailed}
	}
	var unready []string
	for i, e := range c.entries[:len(out.InitContainerStatuses)] {
		if s := &out.InitContainerStatuses[i]; e.Kind == lifecycle.Sidecar && !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	for i := range out.ContainerStatuses {
		if s := &out.ContainerStatuses[i]; !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	if len(unready) == 0 {
		return corev1.PodCondition{Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: reasonContainersNotReady,
		Message: fmt.Sprintf("containers with unready status: %s", unready)}
}

// ready is true if the containers are ready and every readiness gate is true. A gate without a condition counts as
// false.
func (c *computation) ready(out *corev1.PodStatus, containers corev1.PodCondition) corev1.PodCondition {
	if containers.Status != corev1.ConditionTrue {
		return containers
	}
	var problems []string
	for _, gate := range c.in.Pod.Spec.ReadinessGates {
		switch condition := podview.Condition(c.in.Pod, gate.ConditionType); {
		case condition == nil:
			problems = append(problems, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.",
				gate.ConditionType))
		case condition.Status != corev1.ConditionTrue:
			problems = append(problems, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v",
				gate.ConditionType, condition.Status))
		}
	}
	if len(problems) > 0 {
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: reasonReadinessGatesNotReady,
			Message: strings.Join(problems, ", ")}
	}
	return corev1.PodCondition{Status: corev1.ConditionTrue}
}
