package probe

import (
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/seconds"
)

// Kind is what a probe decides about.
type Kind string

// The kinds of probes; their text begins the messages about them.
const (
	Startup   Kind = "Startup"
	Liveness  Kind = "Liveness"
	Readiness Kind = "Readiness"
)

// Outcome is the result of one diagnostic.
type Outcome string

// The outcomes of a diagnostic. Unknown means that the diagnostic itself could not be carried out: it is not
// counted. Warning counts as Success, and is reported.
const (
	Success Outcome = "Success"
	Warning Outcome = "Warning"
	Failure Outcome = "Failure"
	Unknown Outcome = "Unknown"
)

// window is the state of a probe after its outcomes so far.
//
//	Success --failureThreshold failures in a row--> Failure
//	Failure --successThreshold successes in a row--> Success
//
// Both also lead away from Unknown, where a startup probe begins.
type window struct {
	state Outcome
	last  Outcome
	run   int32
}

// initial returns the state before the first outcome: a container counts as alive until a probe fails, and as not
// ready until one succeeds.
func initial(kind Kind) window {
	switch kind {
	case Liveness:
		return window{state: Success}
	case Readiness:
		return window{state: Failure}
	}
	return window{state: Unknown}
}

// observe counts one outcome.
func (w window) observe(outcome Outcome, probe *corev1.Probe) window {
	if outcome == Unknown {
		return w
	}
	if outcome == w.last {
		w.run++
	} else {
		w.last, w.run = outcome, 1
	}
	threshold := probe.FailureThreshold
	if outcome == Success {
		threshold = probe.SuccessThreshold
	}
	if w.run >= max(threshold, 1) {
		w.state = outcome
	}
	return w
}

// firstAt returns when a probe first runs: after its initial delay. If that is long ago, because the nodeagent has
// just started, the probes of all containers are spread over one period.
func firstAt(probe *corev1.Probe, startedAt, now time.Time, containerID string) time.Time {
	first := startedAt.Add(seconds.Of(probe.InitialDelaySeconds))
	period := Period(probe)
	if now.Sub(first) < period {
		return first
	}
	h := fnv.New32a()
	h.Write([]byte(containerID))
	return now.Add(time.Duration(h.Sum32()) % period)
}

// Period returns the time between two runs of a probe.
func Period(probe *corev1.Probe) time.Duration {
	if probe.PeriodSeconds < 1 {
		return 10 * time.Second
	}
	return seconds.Of(probe.PeriodSeconds)
}

// Timeout returns how long one run may take.
func Timeout(probe *corev1.Probe) time.Duration { return seconds.Of(max(probe.TimeoutSeconds, 1)) }

// Kill means that a container instance must be killed because a probe failed.
type Kill struct {
	Kind Kind
	// Message is the beginning of the event's text.
	Message string
	// GracePeriod is the probe's own, which replaces the Pod's; nil keeps the Pod's.
	GracePeriod *int64
}

// Result is the combined result of a container instance's probes.
type Result struct {
	// Started and Ready are those of the container's status, given that it runs.
	Started, Ready bool
	// Kill is set once a liveness or startup probe has failed for good.
	Kill *Kill
}

// resultOf combines the states of the container's probes. A container without a probe of a kind passes it, and a
// container that has not started is not ready.
func resultOf(container *corev1.Container, states map[Kind]Outcome) Result {
	var result Result
	result.Started = container.StartupProbe == nil || states[Startup] == Success
	result.Ready = result.Started && (container.ReadinessProbe == nil || states[Readiness] == Success)
	switch {
	case states[Startup] == Failure:
		result.Kill = killFor(container, Startup, "startup", container.StartupProbe)
	case states[Liveness] == Failure:
		result.Kill = killFor(container, Liveness, "liveness", container.LivenessProbe)
	}
	return result
}

func killFor(container *corev1.Container, kind Kind, word string, probe *corev1.Probe) *Kill {
	return &Kill{Kind: kind, Message: "Container " + container.Name + " failed " + word + " probe",
		GracePeriod: probe.TerminationGracePeriodSeconds}
}
