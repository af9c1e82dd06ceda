package cronjob

import (
	"fmt"
	"time"

	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	var a explain.Account
	c := in.CronJob
	a.Do(len(plan.Delete), "deletes %s beyond the history limits", explain.Count(len(plan.Delete), "finished Job"))
	if plan.Start != nil {
		a.Do(len(plan.Start.Replaced), "deletes %s that it replaces",
			explain.Count(len(plan.Start.Replaced), "running Job"))
		a.Do(1, "starts Job %s", plan.Start.Job.Name)
	}
	var last time.Time
	if c.Status.LastScheduleTime != nil {
		last = c.Status.LastScheduleTime.Time
	}
	switch {
	case c.DeletionTimestamp != nil:
		a.Wait(explain.Wait{Since: c.DeletionTimestamp.Time, Reason: "Deleting", For: "its deletion to finish",
			Ends: "its finalizers are gone"})
		return a
	case isSuspended(c):
		a.Wait(explain.Wait{Reason: "Suspended", For: "the end of its suspension", Ends: "spec.suspend is false"})
	}
	stopped := false
	for _, e := range plan.Events {
		switch e.Reason {
		case alreadyActive().Reason:
			a.Wait(explain.Wait{Since: last, Reason: e.Reason, For: fmt.Sprintf(
				"%s to finish: spec.concurrencyPolicy is Forbid", explain.Count(len(plan.Status.Active),
					"running Job")),
				Ends: "they finish, or are deleted"})
		case "TooManyMissedTimes":
			if stopped = plan.Start == nil; stopped {
				a.Wait(explain.Wait{Since: last, Reason: e.Reason, For: "somebody to look: " + e.Message,
					Ends: "the starting deadline is set or shortened"})
			}
		case "MissSchedule", "UnparseableSchedule", "UnknownTimeZone":
			a.Wait(explain.Wait{
				Since: last, Reason: e.Reason, For: "somebody to look: " + e.Message,
				Ends: "the schedule, time zone or starting deadline is changed, or the next time comes",
			})
		}
	}
	if !plan.Wake.IsZero() && !stopped { // the next time is one more that is missed
		a.Wait(explain.Wait{Since: last, Reason: "Schedule", For: fmt.Sprintf("the next time of its schedule %q",
			c.Spec.Schedule), Ends: "it is " + explain.At(plan.Wake)})
	}
	a.Settled = "its schedule names no time to come"
	return a
}
