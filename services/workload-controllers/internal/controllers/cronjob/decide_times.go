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

// mostMissed is how many scheduled times in a row may have been missed without a word: with more, it is unclear what
// went wrong.
const mostMissed = 100

var errNoSchedule = errors.New("no schedule after the time zone")

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
	// tooMany says that more times were missed than may be without a word.
	tooMany bool
	// next is the first time after now; zero: there is none.
	next time.Time
}

// timesOf says which of the schedule's times are due. It takes a bounded number of steps, however far in the past the
// last start was.
func timesOf(c *batchv1.CronJob, schedule cron.Schedule, location *time.Location, now time.Time) times {
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
			t.tooMany, t.due = true, latestUntil(schedule, at, now)
			break
		}
		t.due = at
	}
	return t
}

// latestUntil is the last of the schedule's times that is not after now; at is one of them.
func latestUntil(schedule cron.Schedule, at, now time.Time) time.Time {
	if every, ok := schedule.(cron.ConstantDelaySchedule); ok {
		return at.Add(now.Sub(at) / every.Delay * every.Delay)
	}
	// The first time after a moment is never before that after an earlier one: the last moment whose next time has come
	// is searched for between one that is and one that is not.
	for is, not := at, now; not.Sub(is) > time.Second; {
		middle := is.Add(not.Sub(is) / 2)
		if next := schedule.Next(middle); next.IsZero() || next.After(now) {
			not = middle
		} else {
			is, at = next, next
		}
	}
	return at
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
