// Package podstate decides what to do next for one Pod: from the API's Pod, the runtime's state, the worker's memory
// and the time, it derives the actions that bring the Pod closer to its goal, and the time at which to decide again. It
// is pure and level-triggered: the same input gives the same plan, regardless of earlier events.
//
// A Pod passes through its goals in this order only:
//
//	Run -> Finish -> Terminate
//
// Run starts and restarts containers. Finish (the containers have ended for good, or the Pod failed as a whole) stops
// what is left and frees what the Pod used, but keeps the ended containers and their logs. Terminate (the object is
// being deleted, or is gone) does the same, removes everything and ends with the deletion of the object.
//
//keelson:decision
package podstate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/resize"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// Input is all that a decision depends on. Decide does not change it.
type Input struct {
	Now time.Time
	// Pod is the newest object known, own status writes included, at the size that the node has allocated it.
	Pod *corev1.Pod
	// Removed means that the API has no object of this UID any more.
	Removed bool
	// StartedAt is when the Pod became active on this node; activeDeadlineSeconds counts from it.
	StartedAt time.Time
	// Observed is what the runtime has of the Pod, sorted.
	Observed *observed.Pod
	Memory   Memory
	// Steps are the preparation steps, in the order in which they are set up.
	Steps []string
	// Probes are the probes' verdicts by instance ID. An instance without an entry has no verdict yet.
	Probes map[string]Probe
	// Ops are the operations in flight.
	Ops map[Key]Op
	// Hold is why nothing of the Pod may start yet; empty if it may.
	Hold string
}

// Memory is what the worker knows beyond the API and the runtime. All of it may be lost in a crash without harm,
// except Streaks, Hooked, Resize, RestartAll and the Rejection of a Pod that was admitted, which the checkpoint
// keeps.
type Memory struct {
	// Rejection is why the node refused or ended the Pod; nil if it did not.
	Rejection *Outcome
	// Prepared holds the steps that are set up, Released those that are taken down completely.
	Prepared map[string]bool
	Released map[string]bool
	// RefreshAt holds, by step, when it must be set up again to be up to date; a step without an entry is not
	// refreshed by time.
	RefreshAt map[string]time.Time
	// Streaks holds, by container name, the attempt with which the container's back-off last began, plus one for each
	// later restart that does not count.
	Streaks map[string]uint32
	// Hooked holds the IDs of instances whose postStart hook has finished.
	Hooked map[string]bool
	// MustStop holds, by instance ID, why an instance must be stopped.
	MustStop map[string]StopReason
	// Faults holds the last failure of operations.
	Faults map[Key]Fault
	// SandboxesStopped holds the IDs of sandboxes that were stopped, so that their network is free.
	SandboxesStopped map[string]bool
	// Termination is the termination under way since the Pod left Run.
	Termination *lifecycle.Termination
	Resize      resize.Actuation
	RestartAll  *RestartAll
}

// Outcome is why a Pod failed as a whole.
type Outcome struct {
	Reason  string
	Message string
	// Grace bounds the time that its containers may take to stop; zero leaves them their own grace period.
	Grace time.Duration
	// Disruption means that the Pod ends for the node's sake and would not have failed elsewhere: its status gets the
	// condition DisruptionTarget.
	Disruption bool
}

// ReasonEvicted is the API's reason of a Pod that its node ends or refuses for lack of a resource.
const ReasonEvicted = "Evicted"

// ReasonUnexpected is the kubelet's reason of a Pod that its node refuses because a device or other exclusive
// resource cannot be allocated to it.
const ReasonUnexpected = "UnexpectedAdmissionError"

// Unallocated is the outcome, as the kubelet words it, of a Pod to which something cannot be allocated.
func Unallocated(why error) Outcome {
	message := fmt.Sprintf("Allocate failed due to %v, which is unexpected", why)
	return Outcome{Reason: ReasonUnexpected, Message: message}
}

// StopReason is why one instance must be stopped.
type StopReason struct {
	Reason  string
	Message string
	Grace   time.Duration
}

// Fault is a failed operation. Count is the number of failures in a row.
type Fault struct {
	At      time.Time
	Count   int
	Reason  string
	Message string
}

// Probe is the verdict of an instance's probes.
type Probe struct {
	// Started means that the startup probe has succeeded, or that the instance has none.
	Started bool
	// Ready means that the readiness probe succeeds, or that the instance has none.
	Ready bool
	// MustStop is set when the startup or liveness probe has failed for good.
	MustStop *StopReason
}

// Op is an operation in flight.
type Op struct {
	// Deadline is the deadline of a stop.
	Deadline time.Time
	// Recalled, for a start, means that it will create nothing, though it still gets its images.
	Recalled bool
	// Size is the size that a start gives its instance, even if the Pod is resized meanwhile.
	Size *sizes.Instance
}

// Goal is the state that a Pod is to reach.
type Goal string

// The goals, in the only order in which a Pod passes through them.
const (
	Run       Goal = "Run"
	Finish    Goal = "Finish"
	Terminate Goal = "Terminate"
)

// Kind names an action.
type Kind string

// The actions.
const (
	Prepare         Kind = "Prepare"
	CreateSandbox   Kind = "CreateSandbox"
	StopSandbox     Kind = "StopSandbox"
	RemoveSandbox   Kind = "RemoveSandbox"
	StartContainer  Kind = "StartContainer"
	RunPostStart    Kind = "RunPostStart"
	StopContainer   Kind = "StopContainer"
	RemoveContainer Kind = "RemoveContainer"
	Release         Kind = "Release"
	DeletePod       Kind = "DeletePod"
	ResizePod       Kind = "ResizePod"
)

// Action is one thing to do now. Actions of one plan do not depend on each other.
type Action struct {
	// Key identifies the operation. A StopContainer with an earlier deadline replaces the one in flight.
	Key
	// SandboxID and ID are the sandbox and the container instance that the action is about.
	SandboxID string
	ID        string
	// Container is the container to start, hook or stop; its Spec may be nil for one that the spec no longer has.
	Container lifecycle.Entry
	// Attempt is the attempt of the sandbox or container to create.
	Attempt uint32
	// Streak, if set, is the attempt with which the container's back-off restarts.
	Streak *uint32
	// Force requires more than a call to the runtime: a call has failed before, or a start was interrupted.
	Force bool
	// Deadline and PreStop specify how to stop; Reason and Message say why.
	Deadline time.Time
	PreStop  bool
	Reason   string
	Message  string
	// Resize is what a ResizePod does.
	Resize *Resizing
}

// Waiting is why a container waits.
type Waiting struct {
	Reason  string
	Message string
}

// Plan is the decision.
type Plan struct {
	Goal Goal
	// Outcome is set if the Pod fails as a whole.
	Outcome *Outcome
	// Termination is the termination under way, to be remembered.
	Termination *lifecycle.Termination
	Actions     []Action
	// Cancel lists operations in flight whose result is no longer wanted.
	Cancel []Key
	// Recall lists starts and hooks in flight that are called off, except for fetching images: the images are needed
	// again soon, and restarting the pulls each time might never finish.
	Recall []Key
	// Waiting explains, by container name, why a container does not run.
	Waiting map[string]Waiting
	// Hooking lists, by instance ID, running instances whose postStart hook has not finished.
	Hooking map[string]bool
	// RestartAll is set if all containers restart from now on. The plan has no actions then: RestartAll must be saved
	// first.
	RestartAll *RestartAll
	// Streaks is to be saved with RestartAll: it holds, by container name, the attempts with which back-offs begin
	// that must not count what now ends.
	Streaks map[string]uint32
	// Restarting means that all containers restart and have not all ended yet.
	Restarting bool
	// Resizing means that something of the Pod does not yet have the size that the node has allocated it.
	Resizing bool
	// Wake is when to decide again if nothing happens before; zero if only an event can change anything.
	Wake time.Time
	// Stopped means that no process of the Pod is left and none can appear.
	Stopped bool
	// Gone means that nothing of the Pod is left anywhere: the worker may end.
	Gone bool
}

// Decide returns the plan for the Pod.
func Decide(in Input) Plan {
	v := newView(in)
	v.cancelStops()
	v.hooking()
	v.plan.Goal, v.plan.Outcome = v.goal()
	if v.plan.Goal == Run {
		v.run()
		v.showEarlier()
	} else {
		v.end()
	}
	return v.plan
}
