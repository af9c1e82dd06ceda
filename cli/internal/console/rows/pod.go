package rows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/podview"
)

// Pod is a row of the table of Pods.
type Pod struct {
	Named
	// Node is empty as long as the Pod has none.
	Node string `json:"node,omitempty"`
	// State is the phase, or that the Pod is being deleted.
	State string `json:"state"`
	Tone  Tone   `json:"tone"`
	// Ready of the Containers that are to be ready at once are.
	Ready      int   `json:"ready"`
	Containers int   `json:"containers"`
	Restarts   int32 `json:"restarts"`
	// Waits is why it waits or failed, as its status says it; empty if it does neither.
	Waits string `json:"waits,omitempty"`
	// Owner is the workload that it belongs to.
	Owner *Owner `json:"owner,omitempty"`
	// Logs names the containers that may have a log, in the order in which they start.
	Logs []string `json:"logs,omitempty"`
}

// Owner is the workload that a Pod belongs to, in the Pod's namespace.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// stateDeleting is the state of a Pod that is being deleted.
const stateDeleting = "Terminating"

// OfPod returns the row of a Pod.
func OfPod(p *corev1.Pod) Pod {
	row := Pod{Named: named("Pod", p), Node: p.Spec.NodeName, State: string(p.Status.Phase), Owner: owner(p)}
	for i := range p.Spec.InitContainers {
		row.Logs = append(row.Logs, p.Spec.InitContainers[i].Name)
		if podview.IsSidecar(&p.Spec.InitContainers[i]) {
			row.Containers++
			row.Ready += readyOf(p.Status.InitContainerStatuses, p.Spec.InitContainers[i].Name)
		}
	}
	for i := range p.Spec.Containers {
		row.Logs = append(row.Logs, p.Spec.Containers[i].Name)
		row.Containers++
		row.Ready += readyOf(p.Status.ContainerStatuses, p.Spec.Containers[i].Name)
	}
	for i := range p.Spec.EphemeralContainers {
		row.Logs = append(row.Logs, p.Spec.EphemeralContainers[i].Name)
	}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range statuses {
			row.Restarts += statuses[i].RestartCount
		}
	}
	row.Tone, row.Waits = judgePod(p)
	row.Waits = shortened(row.Waits)
	if p.DeletionTimestamp != nil {
		row.State = stateDeleting
	}
	return row
}

func readyOf(statuses []corev1.ContainerStatus, name string) int {
	for i := range statuses {
		if statuses[i].Name == name && statuses[i].Ready {
			return 1
		}
	}
	return 0
}

// judgePod says how a Pod is and, if it does not run as it should, why.
func judgePod(p *corev1.Pod) (tone Tone, why string) {
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		return Idle, ""
	case p.Status.Phase == corev1.PodFailed:
		return Bad, failure(p)
	case p.DeletionTimestamp != nil:
		return Busy, leaving(p)
	case p.Spec.NodeName == "":
		return unplaced(p)
	}
	endsFirst := func(name string) bool {
		return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
			return c.Name == name && !podview.IsSidecar(&c)
		})
	}
	if tone, why := starting(p.Status.InitContainerStatuses, "init container", endsFirst); why != "" {
		return tone, why
	}
	if tone, why := starting(p.Status.ContainerStatuses, "container", endsFirst); why != "" {
		return tone, why
	}
	switch ready := podview.Condition(p, corev1.PodReady); {
	case podview.IsReady(p):
		return Good, ""
	case ready != nil && ready.Message != "":
		return Busy, because(ready.Reason, ready.Message)
	case len(p.Status.ContainerStatuses) == 0:
		return Busy, "its node has not started its containers yet"
	}
	return Busy, "not ready"
}

// failure says why a Pod failed: its own reason, or the first container that did not end well.
func failure(p *corev1.Pod) string {
	if why := because(p.Status.Reason, p.Status.Message); why != "" {
		return why
	}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range statuses {
			if ended := statuses[i].State.Terminated; ended != nil && ended.ExitCode != 0 {
				return "container " + statuses[i].Name + " " + endOf(ended)
			}
		}
	}
	return ""
}

func endOf(ended *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with status %d", ended.ExitCode)
	if why := because(ended.Reason, ended.Message); why != "" {
		text += " (" + why + ")"
	}
	return text
}

// leaving says what the end of a Pod that is being deleted waits for.
func leaving(p *corev1.Pod) string {
	if len(p.Finalizers) > 0 {
		return "being deleted, waits for its finalizers: " + strings.Join(p.Finalizers, ", ")
	}
	return "being deleted, waits for its containers to end"
}

// unplaced says why a Pod has no node.
func unplaced(p *corev1.Pod) (Tone, string) {
	gates := make([]string, 0, len(p.Spec.SchedulingGates))
	for _, gate := range p.Spec.SchedulingGates {
		gates = append(gates, gate.Name)
	}
	scheduled := podview.Condition(p, corev1.PodScheduled)
	switch {
	case len(gates) > 0:
		return Busy, "waits for its scheduling gates to be removed: " + strings.Join(gates, ", ")
	case scheduled != nil && scheduled.Status == corev1.ConditionFalse:
		return Bad, because(scheduled.Reason, scheduled.Message)
	}
	return Busy, "waits for the scheduler"
}

// tries are the reasons for which a container waits while nothing has failed.
var tries = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true}

// starting returns what the first container waits for that waits, or that it ended with an error and starts again, or
// that it runs although the others wait for its end. One that failed comes before one that only waits.
func starting(statuses []corev1.ContainerStatus, word string, endsFirst func(name string) bool) (tone Tone,
	why string) {
	for i := range statuses {
		status := &statuses[i]
		state, said := Busy, ""
		switch waiting, ended := status.State.Waiting, status.State.Terminated; {
		case waiting != nil:
			said = cmp.Or(because(waiting.Reason, waiting.Message), "waits")
			if !tries[waiting.Reason] {
				state = Bad
			}
		case ended != nil && ended.ExitCode != 0:
			state, said = Bad, endOf(ended)
		case status.State.Running != nil && endsFirst(status.Name):
			said = "runs"
		}
		if said != "" && (why == "" || tone == Busy && state == Bad) {
			tone, why = state, word+" "+status.Name+": "+said
		}
	}
	return tone, why
}

// owner returns the workload that a Pod belongs to. A Pod of a Deployment belongs to a ReplicaSet whose name is the
// Deployment's and the hash of the template, which the Pod has as a label.
func owner(p *corev1.Pod) *Owner {
	controller := metav1.GetControllerOfNoCopy(p)
	if controller == nil {
		return nil
	}
	if hash := p.Labels["pod-template-hash"]; controller.Kind == "ReplicaSet" && hash != "" {
		if name, ok := strings.CutSuffix(controller.Name, "-"+hash); ok {
			return &Owner{Kind: "Deployment", Name: name}
		}
	}
	return &Owner{Kind: controller.Kind, Name: controller.Name}
}
