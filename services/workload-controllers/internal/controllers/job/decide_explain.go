package job

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	var a explain.Account
	job, status := in.Job, &plan.Status
	a.Do(len(plan.Adopt), "adopts %s", explain.Count(len(plan.Adopt), "Pod"))
	a.Do(len(plan.Release), "releases %s", explain.Count(len(plan.Release), "Pod"))
	a.Do(len(plan.Recorded), "counts %s", explain.Count(len(plan.Recorded), "ended Pod"))
	a.Do(len(plan.Remove), "removes %s", explain.Count(len(plan.Remove), "Pod"))
	a.Do(len(plan.End), "ends %s", explain.Count(len(plan.End), "Pod"))
	a.Do(len(plan.Create), "creates %s", explain.Count(len(plan.Create), "Pod"))
	active := int(status.Active) + valueOr(status.Terminating, 0)
	switch plan.Reason {
	case ReasonDeleting:
		a.Wait(explain.Wait{Since: job.DeletionTimestamp.Time, Reason: "Deleting", For: "its deletion to finish",
			Ends: "its Pods and finalizers are gone"})
	case ReasonSuspended:
		w := explain.Wait{Reason: "Suspended", For: "the end of its suspension", Ends: "spec.suspend is false"}
		if c := conditions.Job.Find(status.Conditions, batchv1.JobSuspended); c != nil {
			w.Since = c.LastTransitionTime.Time
		}
		a.Wait(w)
	case ReasonEnding:
		w := explain.Wait{Reason: "Ending", For: explain.Count(active, "Pod") + " to end",
			Ends: "all of them have ended and are counted: then the outcome is final"}
		if c := interim(status); c != nil {
			w.Since, w.Reason = c.LastTransitionTime.Time, c.Reason
			w.Ends += fmt.Sprintf(" (%s: %s)", c.Type, c.Message)
		}
		a.Wait(w)
	case ReasonWaiting:
		a.Wait(explain.Wait{Reason: "BackOff", For: fmt.Sprintf("the time of the next Pods, after %s",
			explain.Count(int(status.Failed), "failure")), Ends: "it is " + explain.At(plan.Wake)})
	}
	if plan.Reason != ReasonEnding && plan.Reason != ReasonDeleting && plan.Reason != ReasonFinished && active > 0 {
		a.Wait(running(in, plan, active))
	}
	a.Settled = outcome(status)
	return a
}

// outcome returns how a Job has ended, if it has.
func outcome(status *batchv1.JobStatus) string {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := conditions.Job.Find(status.Conditions, kind); c != nil && isTrue(status, kind) {
			return fmt.Sprintf("it is %s since %s %s", kind, explain.At(c.LastTransitionTime.Time), c.Message)
		}
	}
	return "nothing is to be done for it"
}

// running describes the wait for running Pods.
func running(in Input, plan Plan, active int) explain.Wait {
	w := explain.Wait{Reason: "Running", For: explain.Count(active, "Pod") + " to end",
		Ends: "they have ended: keel explain pod tells more of each"}
	if start := plan.Status.StartTime; start != nil {
		w.Since = start.Time
	}
	if seconds := in.Job.Spec.ActiveDeadlineSeconds; seconds != nil && !plan.Wake.IsZero() {
		w.Ends += fmt.Sprintf(", or spec.activeDeadlineSeconds (%d) have passed", *seconds)
	}
	return w
}

// leaves returns why this controller does not manage a Job, or "".
func leaves(job *batchv1.Job) string {
	if by := job.Spec.ManagedBy; by != nil && *by != batchv1.JobControllerName {
		return "leaves it alone: spec.managedBy gives it to " + *by
	}
	return "leaves it alone: it knows no such spec.completionMode"
}
