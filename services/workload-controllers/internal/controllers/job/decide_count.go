package job

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
)

// maxUncounted bounds the uncounted Pods of a status; later passes record the rest.
const maxUncounted = 500

// ending is how the counters see a Pod.
type ending int

const (
	live ending = iota
	succeeded
	failed
)

// member is a Pod of the Job.
type member struct {
	pod    *corev1.Pod
	index  int
	ending ending
	// tracked Pods have the finalizer; recorded Pods are in the status by their UID.
	tracked, recorded bool
	// handling is the consequence of a failure.
	handling handling
	attempt  attempt
}

// round is one decision under construction.
type round struct {
	in  Input
	job *batchv1.Job
	// status is the next status.
	status batchv1.JobStatus
	// indexed Jobs count by index; completions is noIndex for work queues.
	indexed     bool
	completions int
	members     []member
	// completed and failed are the ended indexes, including those of uncounted Pods.
	completed, failed indexes
	// successes is the number of succeeded Pods, or of succeeded indexes; failures is the number of failed Pods. Both
	// include what the status does not record yet.
	successes, failures int
	// newest is the last Pod of each index, by attempt, if failures are limited by index.
	newest map[int]*member
	// verdict is the interim condition; nil while the outcome is open.
	verdict *batchv1.JobCondition
	plan    Plan
}

// observe classifies the Pods and moves those without the finalizer to the counters.
func observe(in Input) *round {
	r := &round{in: in, job: in.Job, status: *in.Job.Status.DeepCopy(), indexed: isIndexed(in.Job),
		completions: valueOr(in.Job.Spec.Completions, noIndex), newest: map[int]*member{}}
	if r.status.UncountedTerminatedPods == nil {
		r.status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	uncounted := r.status.UncountedTerminatedPods
	for _, pod := range in.Pods {
		r.members = append(r.members, member{pod: pod, index: noIndex, tracked: isTracked(pod)})
	}
	for i := range r.members {
		m := &r.members[i]
		if r.indexed {
			m.index, m.attempt = indexOf(m.pod), attemptOf(m.pod)
		}
		m.ending = r.endingOf(m)
		switch {
		case slices.Contains(uncounted.Failed, m.pod.UID):
			m.ending, m.recorded = failed, true
		case slices.Contains(uncounted.Succeeded, m.pod.UID):
			m.ending, m.recorded = succeeded, true
		}
		if m.ending == failed {
			m.handling = handlingOf(r.job, m.pod)
		}
	}
	slices.SortFunc(r.members, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	r.count()
	if r.indexed {
		r.sortIndexes()
	}
	r.sum()
	return r
}

// endingOf returns how the counters see a Pod.
func (r *round) endingOf(m *member) ending {
	switch {
	case !m.tracked:
		return live
	case m.pod.Status.Phase == corev1.PodSucceeded:
		return succeeded
	case m.pod.Status.Phase == corev1.PodFailed:
		return failed
	case podview.IsTerminating(m.pod) && !replacesFailedOnly(r.job):
		return failed
	default:
		return live
	}
}

// count moves the uncounted Pods that have lost their finalizer to the counters.
func (r *round) count() {
	waiting := map[types.UID]bool{}
	for i := range r.members {
		waiting[r.members[i].pod.UID] = r.members[i].tracked
	}
	move := func(uids []types.UID, counter *int32) []types.UID {
		var left []types.UID
		for _, uid := range uids {
			if waiting[uid] {
				left = append(left, uid)
				continue
			}
			*counter++
			if slices.Contains(r.in.Absent, uid) {
				r.plan.Vanished = append(r.plan.Vanished, uid)
			}
		}
		return left
	}
	uncounted := r.status.UncountedTerminatedPods
	uncounted.Succeeded = move(uncounted.Succeeded, &r.status.Succeeded)
	uncounted.Failed = move(uncounted.Failed, &r.status.Failed)
}

// sortIndexes determines which indexes have ended.
func (r *round) sortIndexes() {
	r.completed = parseIndexes(r.status.CompletedIndexes, r.completions)
	var more []int
	for i := range r.members {
		if m := &r.members[i]; m.tracked && m.ending == succeeded && r.isInRange(m) {
			more = append(more, m.index)
		}
	}
	r.completed = r.completed.with(more...)
	if r.job.Spec.BackoffLimitPerIndex == nil {
		return
	}
	if r.status.FailedIndexes != nil {
		r.failed = parseIndexes(*r.status.FailedIndexes, r.completions)
	}
	more = nil
	for i := range r.members {
		m := &r.members[i]
		if !r.isInRange(m) || r.completed.has(m.index) {
			continue
		}
		if m.tracked && m.ending == failed && r.isExhausted(m) {
			more = append(more, m.index)
		}
		if last := r.newest[m.index]; last == nil || last.attempt.total() < m.attempt.total() {
			r.newest[m.index] = m
		}
	}
	r.failed = r.failed.with(more...)
}

// isInRange reports whether a Pod of an indexed Job has an index that the Job still has.
func (r *round) isInRange(m *member) bool { return m.index != noIndex && m.index < r.completions }

// isExhausted reports whether the index of a failed Pod must not be tried again.
func (r *round) isExhausted(m *member) bool {
	switch m.handling.action {
	case batchv1.PodFailurePolicyActionFailIndex:
		return true
	case batchv1.PodFailurePolicyActionIgnore:
		return false
	default:
		return m.attempt.failures >= int(*r.job.Spec.BackoffLimitPerIndex)
	}
}

// isKept reports whether a failed Pod must stay for now: until the next Pod of its index exists, only this Pod
// records how often the index has failed.
func (r *round) isKept(m *member) bool {
	return r.verdict == nil && r.job.DeletionTimestamp == nil && m.ending == failed &&
		r.newest[m.index] != nil && r.newest[m.index].pod == m.pod && !r.failed.has(m.index)
}

// sum adds up the counters, the uncounted Pods, and the Pods that the status does not record yet.
func (r *round) sum() {
	r.successes = int(r.status.Succeeded) + len(r.status.UncountedTerminatedPods.Succeeded)
	r.failures = int(r.status.Failed) + len(r.status.UncountedTerminatedPods.Failed)
	for i := range r.members {
		m := &r.members[i]
		switch {
		case !m.tracked || m.recorded:
		case m.ending == succeeded:
			r.successes++
		case r.countsAsFailed(m):
			r.failures++
		}
	}
	if r.indexed {
		r.successes = r.completed.count()
	}
}

// countsAsFailed reports whether a Pod adds to the failures of the Job.
func (r *round) countsAsFailed(m *member) bool {
	return m.ending == failed && (!r.indexed || r.isInRange(m)) &&
		m.handling.action != batchv1.PodFailurePolicyActionIgnore
}

func (r *round) active() []*corev1.Pod {
	var active []*corev1.Pod
	for i := range r.members {
		if pod := r.members[i].pod; podview.IsActive(pod) {
			active = append(active, pod)
		}
	}
	return active
}

func (r *round) terminating() int {
	count := 0
	for i := range r.members {
		if pod := r.members[i].pod; podview.IsTerminating(pod) && !podview.IsTerminal(pod) {
			count++
		}
	}
	return count
}

// record records the ended Pods in the status, and decides which of them may lose their finalizer.
func (r *round) record() {
	uncounted := r.status.UncountedTerminatedPods
	before := parseIndexes(r.in.Job.Status.CompletedIndexes, r.completions)
	for i := range r.members {
		m := &r.members[i]
		switch {
		case !m.tracked || m.ending == live || r.isKept(m):
		case m.recorded || !r.isNews(m, before):
			r.plan.Untrack = append(r.plan.Untrack, m.pod)
		case len(uncounted.Succeeded)+len(uncounted.Failed) >= maxUncounted:
		default:
			r.tell(m)
		}
	}
	if r.indexed {
		r.status.CompletedIndexes, r.status.Succeeded = r.completed.String(), int32(r.completed.count())
		if r.job.Spec.BackoffLimitPerIndex != nil {
			text := r.failed.String()
			r.status.FailedIndexes = &text
		}
	}
}

// isNews reports whether the end of a Pod changes the status.
func (r *round) isNews(m *member, before indexes) bool {
	if m.ending == failed {
		return r.countsAsFailed(m)
	}
	return !r.indexed || r.isInRange(m) && !before.has(m.index)
}

// tell records a Pod in the status. A Pod that succeeded for an index is recorded by its index.
func (r *round) tell(m *member) {
	r.plan.Recorded = append(r.plan.Recorded, m.pod)
	uncounted := r.status.UncountedTerminatedPods
	switch {
	case m.ending == failed:
		uncounted.Failed = append(uncounted.Failed, m.pod.UID)
	case !r.indexed:
		uncounted.Succeeded = append(uncounted.Succeeded, m.pod.UID)
	}
}
