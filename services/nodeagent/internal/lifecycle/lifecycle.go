// Package lifecycle holds the rules of container life that do not depend on how they are carried out: which kinds of
// container a Pod has, when an instance that ended is restarted and after what delay, in which order containers stop
// and how long they may take. All of it is pure.
//
//keelson:decision
package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/backoff"
	"keelson.dev/kit/podview"
)

// Kind is the role of a container in its Pod.
type Kind string

// The kinds of container. Init containers run one after the other before the main ones; sidecars are init
// containers that keep running; ephemeral containers are added by hand to a running Pod.
const (
	Init      Kind = "Init"
	Sidecar   Kind = "Sidecar"
	Main      Kind = "Main"
	Ephemeral Kind = "Ephemeral"
)

// Entry is one container of a Pod spec with its kind.
type Entry struct {
	Spec *corev1.Container
	Kind Kind
	// Path is the container's path in the spec as in events, for example spec.containers{web}.
	Path string
}

// Entries returns all containers of a Pod: init containers and sidecars in their order, then the main ones, then the
// ephemeral ones. The specs point into the Pod, except those of ephemeral containers, which are copies.
func Entries(pod *corev1.Pod) []Entry {
	spec := &pod.Spec
	out := make([]Entry, 0, len(spec.InitContainers)+len(spec.Containers)+len(spec.EphemeralContainers))
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		kind := Init
		if podview.IsSidecar(c) {
			kind = Sidecar
		}
		out = append(out, Entry{Spec: c, Kind: kind, Path: "spec.initContainers{" + c.Name + "}"})
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		out = append(out, Entry{Spec: c, Kind: Main, Path: "spec.containers{" + c.Name + "}"})
	}
	for i := range spec.EphemeralContainers {
		c := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		out = append(out, Entry{Spec: &c, Kind: Ephemeral, Path: "spec.ephemeralContainers{" + c.Name + "}"})
	}
	return out
}

// Restarts reports whether an instance of the container that ended with exitCode is followed by another one. An
// ordinary init container that has succeeded is never run again, and an ephemeral container is never restarted.
func (e Entry) Restarts(pod *corev1.Pod, exitCode int32) bool {
	if e.Kind == Ephemeral || e.Kind == Init && exitCode == 0 {
		return false
	}
	return podview.Restarts(pod.Spec.RestartPolicy, e.Spec, exitCode)
}

// RestartsAll reports whether all containers of the Pod restart after an instance of this one has ended with
// exitCode.
func (e Entry) RestartsAll(exitCode int32) bool {
	return e.Kind != Ephemeral && podview.RestartsAll(e.Spec, exitCode)
}

// Began reports whether a container of the Pod has been started.
func Began(pod *corev1.Pod) bool {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses,
		pod.Status.ContainerStatuses} {
		if slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return s.ContainerID != "" }) {
			return true
		}
	}
	return false
}

// ResetAfter is how long an instance must have run for its container's back-off to restart.
const ResetAfter = 10 * time.Minute

// crash delays the second and later restarts of a container.
var crash = backoff.Policy{First: 10 * time.Second, Max: 300 * time.Second}

// CrashDelay returns how long to wait after an instance ended before the next one starts. restarts is the number of
// restarts since the container's back-off last began: the first restart is immediate.
func CrashDelay(restarts int) time.Duration { return crash.Delay(restarts) }

// pull delays the attempts to get an image after a failed one.
var pull = backoff.Policy{First: 10 * time.Second, Max: 300 * time.Second}

// PullDelay returns how long to wait after the given number of failed image pulls in a row.
func PullDelay(failures int) time.Duration { return pull.Delay(failures) }

// step delays every other step that failed: volumes, sandbox, container creation.
var step = backoff.Policy{First: time.Second, Max: time.Minute}

// StepDelay returns how long to wait after the given number of failures of a step in a row.
func StepDelay(failures int) time.Duration { return step.Delay(failures) }
