package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/pace"
)

// A status whose only changes are numbers is written at most once in statusPerPod for each Pod, and at least every
// statusAtLatest: many Pods that end together cost few writes, while a single one does not wait. That is longer than
// pace.StatusDue: a Pod is counted two writes after its end, and only the counters wait for them.
const (
	statusPerPod   = 10 * time.Millisecond
	statusAtLatest = time.Second
)

// stamp returns a time in the API's precision.
func stamp(now time.Time) metav1.Time { return metav1.NewTime(now).Rfc3339Copy() }

// withStatus completes the plan with the figures, and decides whether to write them now. If the status waits, so do
// the Pods to record.
func (r *round) withStatus() Plan {
	plan, ready, terminating := r.plan, int32(0), int32(r.terminating())
	for _, pod := range r.active() {
		if podview.IsReady(pod) {
			ready++
		}
	}
	r.status.Active, r.status.Ready, r.status.Terminating = int32(len(r.active())), &ready, &terminating
	plan.Status = r.status
	if !apiequality.Semantic.DeepEqual(plan.Status, r.job.Status) {
		due := r.in.Written.Add(min(time.Duration(len(r.members))*statusPerPod, statusAtLatest))
		plan.WriteStatus = !due.After(r.in.Now) || r.verdict != nil || !onlyFiguresDiffer(&plan.Status, &r.job.Status)
		if !plan.WriteStatus {
			plan.Wake = pace.Earlier(plan.Wake, due)
		}
	}
	if !plan.WriteStatus {
		plan.Recorded, plan.Vanished = nil, nil
	}
	plan.Untrack = append(plan.Untrack, plan.Recorded...)
	return plan
}

// onlyFiguresDiffer reports whether two statuses differ only in numbers and in Pods.
func onlyFiguresDiffer(a, b *batchv1.JobStatus) bool {
	return apiequality.Semantic.DeepEqual(a.Conditions, b.Conditions) && a.StartTime.Equal(b.StartTime)
}
