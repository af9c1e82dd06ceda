package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/pace"
	"keelson.dev/services/workload-controllers/internal/rank"
)

// burst is the most Pods that one pass creates or removes; later passes do the rest.
const burst = 500

// resume suspends the Job, or starts its clock. A suspended Job has no start time, so that the scheduling directives
// of its template may change again (API reference v1.36, Job).
func (r *round) resume() {
	suspended := isTrue(&r.status, batchv1.JobSuspended)
	now := stamp(r.in.Now)
	if isSuspended(r.job) {
		r.status.StartTime = nil
		if !suspended {
			r.setSuspended(corev1.ConditionTrue, "JobSuspended", suspendedMessage)
			r.plan.Events = append(r.plan.Events, nowSuspended())
		}
		return
	}
	if suspended {
		r.setSuspended(corev1.ConditionFalse, "JobResumed", resumedMessage)
		r.plan.Events = append(r.plan.Events, resumed())
	}
	if suspended || r.status.StartTime == nil {
		r.status.StartTime = &now
	}
}

func (r *round) setSuspended(status corev1.ConditionStatus, reason, message string) {
	r.status.Conditions, _ = conditions.Job.Set(r.status.Conditions, batchv1.JobCondition{
		Type: batchv1.JobSuspended, Status: status, Reason: reason, Message: message, LastProbeTime: stamp(r.in.Now),
	}, r.in.Now)
}

// scale brings the active Pods to the wanted number. A pass that removes surplus Pods does nothing else.
func (r *round) scale() {
	r.plan.Wake = r.deadline(r.status.StartTime)
	active := r.active()
	if isSuspended(r.job) {
		r.plan.Reason, r.plan.Remove = ReasonSuspended, firstOf(active, burst)
		return
	}
	want := r.wanted(len(active))
	if surplus := r.surplus(active, want); len(surplus) > 0 {
		r.plan.Reason, r.plan.Remove = ReasonTooMany, firstOf(surplus, burst)
		return
	}
	missing := want - len(active)
	if replacesFailedOnly(r.job) {
		missing -= r.terminating()
	}
	if missing <= 0 {
		r.plan.Reason = ReasonSteady
		return
	}
	var due time.Time
	r.plan.Create, due = r.creations(min(missing, burst))
	r.plan.Wake = pace.Earlier(r.plan.Wake, due)
	if r.plan.Reason = ReasonTooFew; len(r.plan.Create) == 0 {
		r.plan.Reason = ReasonWaiting
	}
}

// wanted returns how many Pods must be active.
func (r *round) wanted(active int) int {
	parallelism := valueOr(r.job.Spec.Parallelism, 1)
	switch {
	case r.completions != noIndex:
		return max(0, min(parallelism, r.completions-r.successes-r.failed.count()))
	case r.successes > 0:
		// The Pods of a work queue know when the work is done: no Pod is added or ended.
		return active
	default:
		return parallelism
	}
}

// surplus returns the active Pods in excess: first those whose index needs none, then the first in the deletion
// order.
func (r *round) surplus(active []*corev1.Pod, want int) []*corev1.Pod {
	rm, left := []*corev1.Pod(nil), active
	if r.indexed {
		rm, left = r.unneeded(active)
	}
	return append(rm, first(left, len(left)-want, r.in.Now)...)
}

// unneeded separates the Pods whose index has ended or has another Pod from the rest.
func (r *round) unneeded(active []*corev1.Pod) (unneeded, needed []*corev1.Pod) {
	byIndex := map[int][]*corev1.Pod{}
	for _, pod := range active {
		index := indexOf(pod)
		if index == noIndex || index >= r.completions || r.completed.has(index) || r.failed.has(index) {
			unneeded = append(unneeded, pod)
			continue
		}
		byIndex[index] = append(byIndex[index], pod)
	}
	for _, pod := range active {
		index := indexOf(pod)
		same := byIndex[index]
		if len(same) == 0 {
			continue
		}
		delete(byIndex, index)
		doubles := first(same, len(same)-1, r.in.Now)
		unneeded = append(unneeded, doubles...)
		needed = append(needed, slices.DeleteFunc(same, func(pod *corev1.Pod) bool {
			return slices.Contains(doubles, pod)
		})...)
	}
	return unneeded, needed
}

// first returns the first n Pods in the deletion order.
func first(pods []*corev1.Pod, n int, now time.Time) []*corev1.Pod {
	if n <= 0 {
		return nil
	}
	byUID, candidates := make(map[types.UID]*corev1.Pod, len(pods)), make([]rank.Pod, 0, len(pods))
	for _, pod := range pods {
		byUID[pod.UID] = pod
		candidates = append(candidates, rank.Of(pod))
	}
	chosen := make([]*corev1.Pod, 0, n)
	for _, candidate := range rank.First(candidates, n, now) {
		chosen = append(chosen, byUID[candidate.UID])
	}
	return chosen
}

// creations returns up to n Pods to create, and when more may be created.
func (r *round) creations(n int) ([]Creation, time.Time) {
	limitedByIndex := r.indexed && r.job.Spec.BackoffLimitPerIndex != nil
	if !limitedByIndex {
		if due := retryAt(r.in.Ended); due.After(r.in.Now) {
			return nil, due
		}
	}
	if !r.indexed {
		made := make([]Creation, n)
		for i := range made {
			made[i].Index = noIndex
		}
		return made, time.Time{}
	}
	taken := r.completed.union(r.failed).with(r.busy()...)
	var due time.Time
	if limitedByIndex {
		var waiting []int
		waiting, due = r.waiting(taken)
		taken = taken.with(waiting...)
	}
	var made []Creation
	for _, index := range taken.missing(r.completions, n) {
		made = append(made, Creation{Index: index, attempt: r.attempt(index)})
	}
	return made, due
}

// busy returns the indexes whose existing Pods exclude another one.
func (r *round) busy() []int {
	var busy []int
	for i := range r.members {
		m := &r.members[i]
		if r.isInRange(m) && (podview.IsActive(m.pod) || replacesFailedOnly(r.job) && !podview.IsTerminal(m.pod)) {
			busy = append(busy, m.index)
		}
	}
	return busy
}

// waiting returns the failed indexes whose next Pod must wait, and when the first wait ends.
func (r *round) waiting(taken indexes) ([]int, time.Time) {
	var waiting []int
	var next time.Time
	for index, m := range r.newest {
		if m.ending != failed || !podview.IsTerminal(m.pod) || taken.has(index) {
			continue
		}
		if due := endedAt(m.pod).Add(retry.Delay(m.attempt.total() + 1)); due.After(r.in.Now) {
			waiting, next = append(waiting, index), pace.Earlier(next, due)
		}
	}
	return waiting, next
}

// attempt returns how often an index has failed, according to its Pods.
func (r *round) attempt(index int) attempt {
	last := r.newest[index]
	switch {
	case last == nil:
		return attempt{}
	case last.ending != failed:
		return last.attempt
	default:
		return last.attempt.next(last.handling.action == batchv1.PodFailurePolicyActionIgnore)
	}
}

func firstOf(pods []*corev1.Pod, n int) []*corev1.Pod { return pods[:min(n, len(pods))] }
