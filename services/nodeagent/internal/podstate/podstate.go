// Package podstate decides what to do next for one Pod: from the Pod as the API has it, what the runtime shows, what
// the worker remembers and the time, it derives the actions that bring the Pod closer to where it shall be, and the
// time at which to look again. It is pure, and level-triggered: the same input gives the same plan, whatever happened
// before.
//
// A Pod goes one way only:
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
	// Removed says that the API has no object of this UID any more.
	Removed bool
	// StartedAt is when the Pod became active on this node; activeDeadlineSeconds counts from it.
	StartedAt time.Time
	// Observed is what the runtime has of the Pod, sorted.
	Observed *observed.Pod
	Memory   Memory
	// Steps are those of the preparation, in the order in which they are set up.
	Steps []string
	// Probes are the probes' verdicts by instance ID. An instance without an entry has no verdict yet.
	Probes map[string]Probe
	// Ops are the operations in flight.
	Ops map[Key]Op
	// Hold says why nothing of the Pod may start yet; empty if it may.
	Hold string
}

// Memory is what the worker knows beyond API and runtime. All of it may be lost in a crash without harm, except
// Streaks, Hooked, Resize, RestartAll and the Rejection of a Pod that was taken in, which the checkpoint keeps.
type Memory struct {
	// Rejection says that the node refused the Pod, or ended it.
	Rejection *Outcome
	// Prepared holds the steps that are set up, Released those of which nothing is left.
	Prepared map[string]bool
	Released map[string]bool
	// RefreshAt holds, by step, when it must be set up anew to be up to date; a step without an entry never by time
	// alone.
	RefreshAt map[string]time.Time
	// Streaks holds, by container name, the attempt with which the container's back-off last began, one more for each
	// restart since then that does not count.
	Streaks map[string]uint32
	// Hooked holds the IDs of instances whose postStart hook has finished.
	Hooked map[string]bool
	// MustStop holds, by instance ID, why an instance must be stopped.
	MustStop map[string]StopReason
	// Faults holds the last failure of operations.
	Faults map[Key]Fault
	// SandboxesStopped holds the IDs of sandboxes that were stopped, so that their network is free.
	SandboxesStopped map[string]bool
	// Termination is under way since the Pod left Run.
	Termination *lifecycle.Termination
	Resize      resize.Actuation
	RestartAll  *RestartAll
}

// Outcome is why a Pod failed as a whole.
type Outcome struct {
	Reason  string
	Message string
	// Grace is how long its containers may take to stop at most; zero leaves them their own period.
	Grace time.Duration
	// Disruption says that the Pod ends for the node's sake and would not have failed elsewhere: its status gets the
	// condition DisruptionTarget.
	Disruption bool
}

// ReasonEvicted is the reason of a Pod that its node ends or refuses for want of something, in the API's words.
const ReasonEvicted = "Evicted"

// ReasonUnexpected is the reason of a Pod that its node refuses because of what is to be allocated to it alone, in the
// field's words.
const ReasonUnexpected = "UnexpectedAdmissionError"

// Unallocated is the outcome of a Pod to which something cannot be allocated, in the field's words.
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
	// Started says that the startup probe has succeeded, or that there is none.
	Started bool
	// Ready says that the readiness probe succeeds, or that there is none.
	Ready bool
	// MustStop is set when the startup or liveness probe has failed for good.
	MustStop *StopReason
}

// Op is an operation in flight.
type Op struct {
	// Deadline is that of a stop.
	Deadline time.Time
	// Recalled says of a start that it will create nothing, though it still gets its images.
	Recalled bool
	// Size is what a start gives its instance, whatever becomes of the Pod meanwhile.
	Size *sizes.Instance
}

// Goal is where the Pod shall be.
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
	// Key identifies the operation. A StopContainer with an earlier deadline takes the place of the one in flight.
	Key
	// SandboxID and ID are the sandbox and the container instance that the action is about.
	SandboxID string
	ID        string
	// Container is the container to start, hook or stop; its Spec may be nil for one that the spec no longer has.
	Container lifecycle.Entry
	// Attempt is that of the sandbox or container to create.
	Attempt uint32
	// Streak, if it is set, is the attempt with which the container's back-off begins anew.
	Streak *uint32
	// Force says that more must be done than to ask the runtime: that has failed before, or a start was interrupted.
	Force bool
	// Deadline and PreStop say how to stop; Reason and Message say why.
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
	// Termination is the one under way, to be remembered.
	Termination *lifecycle.Termination
	Actions     []Action
	// Cancel lists operations in flight whose result is no longer wanted.
	Cancel []Key
	// Recall lists starts and hooks in flight that are called off, but for the images that they get: those are wanted
	// again soon, and to begin with them anew each time may never come to an end.
	Recall []Key
	// Waiting explains, by container name, why a container does not run.
	Waiting map[string]Waiting
	// Hooking lists, by instance ID, running instances whose postStart hook has not finished.
	Hooking map[string]bool
	// RestartAll is set if all containers begin anew from now on. The plan has no actions then: it must be kept first.
	RestartAll *RestartAll
	// Streaks is to be kept with RestartAll: it holds, by container name, the attempts with which back-offs begin that
	// what now ends does not count for.
	Streaks map[string]uint32
	// Restarting says that all containers begin anew and have not all ended yet.
	Restarting bool
	// Resizing says that something of the Pod is not yet of the size that the node has allocated it.
	Resizing bool
	// Wake is when to decide again if nothing happens before; zero if only an event can change anything.
	Wake time.Time
	// Stopped says that no process of the Pod is left, nor can one appear.
	Stopped bool
	// Gone says that nothing of the Pod is left anywhere: the worker may end.
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
