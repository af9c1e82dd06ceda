package job

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
)

// tracking is the finalizer that keeps a Pod until it is counted.
const tracking = batchv1.JobTrackingFinalizer

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now time.Time
	Job *batchv1.Job
	// Selector is the Job's parsed selector.
	Selector labels.Selector
	// Pods have the Job's controller reference, and have not ended or still have the finalizer.
	Pods []*corev1.Pod
	// Orphans are the active Pods of the namespace without a controller that the selector matches.
	Orphans []*corev1.Pod
	// Ended are the Pods that ended without being deleted, counted or not. They are only needed if one has failed.
	Ended []Ended
	// Absent are the uncounted Pods of the status that the cache does not have.
	Absent []types.UID
	// Written is when this process last wrote the status; zero if it has not.
	Written time.Time
}

// Plan names every effect of one pass. apply carries out its fields in order; a failure ends the pass. The order
// makes the counters exact: the status records an ended Pod, then the Pod loses its finalizer, and once that has
// been seen, the Pod moves to the counters.
type Plan struct {
	// Adopt and Release change the ownership of Pods. A plan with either has no other effects: which Pods count must be
	// settled before their number matters.
	Adopt, Release []*corev1.Pod
	// Recorded are the ended Pods that the status records for the first time, Vanished the recorded ones that the cache
	// no longer has. Both hold only if the apiserver agrees.
	Recorded []*corev1.Pod
	Vanished []types.UID
	// Status is the new status, WriteStatus whether to write it now. A difference only in figures may wait.
	Status      batchv1.JobStatus
	WriteStatus bool
	// Untrack are the Pods that lose the finalizer: the status has recorded them, or need not.
	Untrack []*corev1.Pod
	// Remove are active Pods in excess. They lose the finalizer first, so that they are never counted.
	Remove []*corev1.Pod
	// End are the active Pods of a Job that fails.
	End []*corev1.Pod
	// Create are the Pods to create.
	Create []Creation
	// Events are emitted after all of this has succeeded.
	Events []events.Event
	// Reason is why Pods are created or removed.
	Reason Reason
	// Wake is when to decide again even if nothing changes; zero means never.
	Wake time.Time
}

// Creation is one Pod to create.
type Creation struct {
	// Index is the completion index, or noIndex.
	Index int
	// attempt counts the failures of the index; it is written only if failures are limited by index.
	attempt attempt
}

// Reason is why an effect is in the plan. It is used in logs.
type Reason string

// The reasons of a plan's effects.
const (
	ReasonSteady    Reason = "Steady"    // the wanted number of Pods is running
	ReasonTooFew    Reason = "TooFew"    // Pods are missing
	ReasonTooMany   Reason = "TooMany"   // Pods are in excess, or an index has two
	ReasonWaiting   Reason = "Waiting"   // Pods are missing, but the next ones must wait
	ReasonSuspended Reason = "Suspended" // the Job is suspended
	ReasonOwners    Reason = "Owners"    // the ownership of Pods must be settled first
	ReasonEnding    Reason = "Ending"    // the outcome is known, the Pods are ending
	ReasonFinished  Reason = "Finished"  // the Job has ended
	ReasonDeleting  Reason = "Deleting"  // the Job is being deleted and leaves its Pods alone
)

// Decide returns what one pass over a Job has to do.
func Decide(in Input) Plan {
	if isFinished(in.Job) {
		return Plan{Reason: ReasonFinished, Status: in.Job.Status, Untrack: tracked(in.Pods)}
	}
	if adopt, release := claims(in); len(adopt)+len(release) > 0 {
		return Plan{Adopt: adopt, Release: release, Reason: ReasonOwners, Status: in.Job.Status}
	}
	r := observe(in)
	r.judge()
	r.record()
	switch {
	case in.Job.DeletionTimestamp != nil:
		r.plan.Reason = ReasonDeleting
	case r.verdict != nil:
		r.plan.Reason = ReasonEnding
		r.end()
		r.finish()
	default:
		r.resume()
		r.scale()
	}
	return r.withStatus()
}

// claims returns which Pods the Job adopts and which it releases. A Pod of its own without the finalizer would end
// uncounted: the Job adopts it again, unless the outcome is known and the Pod has been counted already.
func claims(in Input) (adopt, release []*corev1.Pod) {
	if in.Job.DeletionTimestamp != nil {
		return nil, nil
	}
	adopt = slices.Clone(in.Orphans)
	for _, pod := range in.Pods {
		switch {
		case !in.Selector.Matches(labels.Set(pod.Labels)):
			release = append(release, pod)
		case podview.IsActive(pod) && !isTracked(pod) && interim(&in.Job.Status) == nil:
			adopt = append(adopt, pod)
		}
	}
	byName := func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(adopt, byName)
	slices.SortFunc(release, byName)
	return adopt, release
}

// isTracked reports whether the Pod has the finalizer.
func isTracked(pod *corev1.Pod) bool { return slices.Contains(pod.Finalizers, tracking) }

func tracked(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !isTracked(pod) })
}

// isFinished reports whether the Job has ended for good.
func isFinished(job *batchv1.Job) bool {
	return isTrue(&job.Status, batchv1.JobComplete) || isTrue(&job.Status, batchv1.JobFailed)
}

func isTrue(status *batchv1.JobStatus, kind batchv1.JobConditionType) bool {
	condition := conditions.Job.Find(status.Conditions, kind)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// interim returns the condition with the outcome of a Job whose Pods have not all ended yet, or nil.
func interim(status *batchv1.JobStatus) *batchv1.JobCondition {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget} {
		if isTrue(status, kind) {
			return conditions.Job.Find(status.Conditions, kind)
		}
	}
	return nil
}

func isIndexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion &&
		job.Spec.Completions != nil
}

func isSuspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// replacesFailedOnly reports whether a Pod that is being deleted is counted and replaced only once it has ended.
func replacesFailedOnly(job *batchv1.Job) bool {
	if policy := job.Spec.PodReplacementPolicy; policy != nil {
		return *policy == batchv1.Failed
	}
	return job.Spec.PodFailurePolicy != nil
}

func valueOr(value *int32, otherwise int) int {
	if value == nil {
		return otherwise
	}
	return int(*value)
}
