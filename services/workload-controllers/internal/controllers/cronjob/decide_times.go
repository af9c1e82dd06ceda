package cronjob

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/seconds"
)

// mostMissed is how many scheduled times in a row may have been missed: with more, it is unclear what went wrong, and
// nothing is started until a person says how far back to look.
const mostMissed = 100

var (
	errTooManyMissed = errors.New("too many missed start times")
	errNoSchedule    = errors.New("no schedule after the time zone")
)

// parse reads a schedule. One that is nothing but a time zone the library does not survive.
func parse(schedule string) (cron.Schedule, error) {
	if hasZone := strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ="); hasZone &&
		!strings.Contains(schedule, " ") {
		return nil, errNoSchedule
	}
	return cron.ParseStandard(schedule)
}

// times are the scheduled times around now.
type times struct {
	// due is the latest time that has come and for which nothing was started yet; zero: there is none.
	due time.Time
	// late is a time that has come too long ago to start anything for it; zero: there is none.
	late time.Time
	// next is the first time after now; zero: there is none.
	next time.Time
}

// timesOf says which of the schedule's times are due. It takes a bounded number of steps, however far in the past the
// last start was.
func timesOf(c *batchv1.CronJob, schedule cron.Schedule, location *time.Location, now time.Time) (times, error) {
	last := c.CreationTimestamp.Time
	if c.Status.LastScheduleTime != nil {
		last = c.Status.LastScheduleTime.Time
	}
	last, now = last.In(location), now.In(location)
	from, t := last, times{next: after(schedule, last, now)}
	if deadline := c.Spec.StartingDeadlineSeconds; deadline != nil {
		// What is exactly as late as allowed is not too late.
		earliest := now.Add(-seconds.Of(*deadline) - time.Nanosecond)
		if late := schedule.Next(last); !late.IsZero() && !late.After(earliest) {
			t.late = late
		}
		from = later(last, earliest)
	}
	at := after(schedule, last, from)
	for count := 0; !at.IsZero() && !at.After(now); at = schedule.Next(at) {
		if count++; count > mostMissed {
			return t, errTooManyMissed
		}
		t.due = at
	}
	return t, nil
}

// after is the schedule's first time after from, which is not before last. Times of an interval count from last.
func after(schedule cron.Schedule, last, from time.Time) time.Time {
	if every, ok := schedule.(cron.ConstantDelaySchedule); ok {
		return schedule.Next(last.Add(max(from.Sub(last), 0) / every.Delay * every.Delay))
	}
	return schedule.Next(later(last, from))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nameFor is the name of the Job for a scheduled time: of two passes over one time, only one makes a Job.
func nameFor(c *batchv1.CronJob, at time.Time) string {
	return fmt.Sprintf("%s-%d", c.Name, at.Unix()/60)
}

func isSuspended(c *batchv1.CronJob) bool { return ptr.Deref(c.Spec.Suspend, false) }
