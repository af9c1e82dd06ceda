package cronjob

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "cronjob-controller"

func created(name string) events.Event {
	return events.Normal("SuccessfulCreate", "Created job %s", name)
}

func createFailed(err error) events.Event {
	return events.Warning("FailedCreate", "Error creating job: %v", err)
}

func nameTaken(name string) events.Event {
	return events.Warning("FailedCreate", "Error creating job: the name %s is that of a Job of somebody else", name)
}

func deleted(name string) events.Event {
	return events.Normal("SuccessfulDelete", "Deleted job %s", name)
}

func completed(name string, condition batchv1.JobConditionType) events.Event {
	return events.Normal("SawCompletedJob", "Saw completed job: %s, condition: %s", name, condition)
}

func missing(name string) events.Event {
	return events.Normal("MissingJob", "Active job went missing: %s", name)
}

func alreadyActive() events.Event {
	return events.Normal("JobAlreadyActive",
		"Not starting job because prior execution is running and concurrency policy is Forbid")
}

func missed(at time.Time) events.Event {
	return events.Warning("MissSchedule", "Missed scheduled time to start a job: %s", at.UTC().Format(time.RFC1123Z))
}

func tooManyMissed() events.Event {
	return events.Warning("TooManyMissedTimes", "too many missed start times (> %d), only the latest is made up for. "+
		"Set or decrease .spec.startingDeadlineSeconds or check clock skew", mostMissed)
}

func stoppedByTooManyMissed() events.Event {
	return events.Warning("TooManyMissedTimes", "Cannot determine if job needs to be started. Too many missed start "+
		"time (> %d). Set or decrease .spec.startingDeadlineSeconds or check clock skew.", mostMissed)
}

func unparseable(c *batchv1.CronJob, err error) events.Event {
	return events.Warning("UnparseableSchedule", "unparseable schedule: %q : %s", c.Spec.Schedule, err)
}

func unknownTimeZone(c *batchv1.CronJob, err error) events.Event {
	return events.Warning("UnknownTimeZone", "invalid timeZone: %q: %s", ptr.Deref(c.Spec.TimeZone, ""), err)
}
