package cronjob

import (
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// When a schedule fires: the first times after a moment.
func TestSchedule(t *testing.T) {
	for _, row := range []struct {
		name, schedule, zone, from string
		want                       []string
	}{
		{"JOB-193 Mondays at three", "0 3 * * 1", "UTC", day + " 04:00:00", []string{"2026-01-12T03:00:00Z"}},
		{"JOB-194 a range and its step", "0 0-23/2 * * *", "UTC", day + " 20:30:00",
			[]string{"2026-01-05T22:00:00Z", "2026-01-06T00:00:00Z", "2026-01-06T02:00:00Z"}},
		{"JOB-194 a list", "0 0,2,4,6,8,10,12,14,16,18,20,22 * * *", "UTC", day + " 20:30:00",
			[]string{"2026-01-05T22:00:00Z", "2026-01-06T00:00:00Z", "2026-01-06T02:00:00Z"}},
		{"JOB-194 all and a step", "0 */2 * * *", "UTC", day + " 20:30:00",
			[]string{"2026-01-05T22:00:00Z", "2026-01-06T00:00:00Z", "2026-01-06T02:00:00Z"}},
		{"JOB-195 either day", "0 0 13 * FRI", "UTC", day + " 00:00:00",
			[]string{"2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z"}},
		{"JOB-195 a question mark and a month", "0 0 1 mar ?", "UTC", day + " 00:00:00",
			[]string{"2026-03-01T00:00:00Z"}},
		{"JOB-196 yearly", "@yearly", "UTC", day + " 00:00:00", []string{"2027-01-01T00:00:00Z",
			"2028-01-01T00:00:00Z"}},
		{"JOB-196 annually", "@annually", "UTC", day + " 00:00:00", []string{"2027-01-01T00:00:00Z"}},
		{"JOB-197 monthly", "@monthly", "UTC", day + " 00:00:00", []string{"2026-02-01T00:00:00Z"}},
		{"JOB-198 weekly", "@weekly", "UTC", day + " 00:00:00", []string{"2026-01-11T00:00:00Z",
			"2026-01-18T00:00:00Z"}},
		{"JOB-199 daily", "@daily", "UTC", day + " 00:00:00", []string{"2026-01-06T00:00:00Z"}},
		{"JOB-199 midnight", "@midnight", "UTC", day + " 00:00:00", []string{"2026-01-06T00:00:00Z"}},
		{"JOB-200 hourly", "@hourly", "UTC", day + " 00:30:00", []string{"2026-01-05T01:00:00Z",
			"2026-01-05T02:00:00Z"}},
		{"JOB-218 in its zone, which changes its clock", "0 3 * * *", "Europe/Kyiv", "2026-03-27 12:00:00",
			[]string{"2026-03-28T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"never", "0 0 30 2 *", "UTC", day + " 00:00:00", []string{"0001-01-01T00:00:00Z"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := hello(schedule(row.schedule))
			c.CreationTimestamp = at(row.from)
			parsed, err := parse(c.Spec.Schedule)
			if err != nil {
				t.Fatal(err)
			}
			now := at(row.from).Time
			for _, want := range row.want {
				got := timesOf(c, parsed, zoneOf(t, row.zone), now)
				if got.next.UTC().Format(time.RFC3339) != want {
					t.Fatalf("after %v comes %v, want %s", now, got.next.UTC(), want)
				}
				now = got.next
			}
		})
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{"", "* * * *", "60 * * * *", "TZ=UTC", "CRON_TZ=UTC", "TZ=Nowhere * * * * *"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q is a schedule", text)
		}
	}
	if _, err := parse("TZ=UTC * * * * *"); err != nil {
		t.Errorf("JOB-222: a zone in the schedule: %v", err)
	}
}

// Which time is due.
func TestDue(t *testing.T) {
	for _, row := range []struct {
		name, now string
		cronJob   *batchv1.CronJob
		due, late string
		tooMany   bool
	}{
		{name: "JOB-187 on the minute", now: "08:00:00", cronJob: hello(), due: "08:00:00"},
		{name: "just before", now: "07:59:59", cronJob: hello()},
		{name: "made on the minute", now: "08:00:00", cronJob: hello(func(c *batchv1.CronJob) {
			c.CreationTimestamp = at("08:00:00")
		})},
		{name: "started already", now: "08:00:30", cronJob: hello(last("08:00:00"))},
		{name: "several missed", now: "08:05:30", cronJob: hello(last("08:00:00")), due: "08:05:00"},
		{name: "a clock that went back", now: "08:02:00", cronJob: hello(last("08:05:00"))},

		{name: "JOB-226 100 missed", now: "09:40:00", cronJob: hello(last("08:00:00")), due: "09:40:00"},
		{name: "JOB-226 101 missed", now: "09:41:00", cronJob: hello(last("08:00:00")), due: "09:41:00",
			tooMany: true},
		{name: "JOB-229 down for two hours", now: "10:21:00", cronJob: hello(last("08:29:00")), due: "10:21:00",
			tooMany: true},
		{name: "JOB-232 many missed, the last of them long ago", now: "21:30:30",
			cronJob: hello(schedule("* 2-4 * * *"), last("01:00:00")), due: "04:59:00", tooMany: true},
		{name: "JOB-232 many missed, between two", now: "10:21:29", cronJob: hello(last("08:29:00")), due: "10:21:00",
			tooMany: true},
		{name: "JOB-232 many of an interval missed", now: "10:00:08",
			cronJob: hello(schedule("@every 5s"), last("08:00:02")), due: "10:00:07", tooMany: true},
		{name: "JOB-230 the same with a deadline", now: "10:21:00", cronJob: hello(last("08:29:00"), deadline(200)),
			due: "10:21:00"},
		{name: "JOB-227 100 within the deadline", now: "12:00:30", cronJob: hello(last("08:00:00"), deadline(6000)),
			due: "12:00:00"},
		{name: "JOB-227 101 within the deadline", now: "12:00:30", cronJob: hello(last("08:00:00"), deadline(6030)),
			due: "12:00:00", tooMany: true},

		{name: "JOB-204 200 seconds late", now: "09:03:20", cronJob: hello(schedule("0 * * * *"), deadline(200),
			last("08:00:00")), due: "09:00:00"},
		{name: "JOB-204 201 seconds late", now: "09:03:21", cronJob: hello(schedule("0 * * * *"), deadline(200),
			last("08:00:00")), late: "09:00:00"},
		{name: "JOB-205 7 hours late", now: "19:00:00", cronJob: hello(schedule("0 0,12 * * *"), deadline(28800)),
			due: "12:00:00"},
		{name: "JOB-205 9 hours late", now: "21:00:00", cronJob: hello(schedule("0 0,12 * * *"), deadline(28800)),
			late: "12:00:00"},
		{name: "a deadline beyond all time", now: "08:00:00", cronJob: hello(deadline(1 << 62)), due: "08:00:00"},
		{name: "an interval", now: "08:09:00", cronJob: hello(schedule("@every 5m"), last("08:00:00")),
			due: "08:05:00"},
		{name: "an interval with a shorter deadline", now: "08:10:01",
			cronJob: hello(schedule("@every 5m"), last("08:00:00"), deadline(10)), due: "08:10:00", late: "08:05:00"},
		{name: "an interval, too late", now: "08:09:00",
			cronJob: hello(schedule("@every 5m"), last("08:00:00"), deadline(10)), late: "08:05:00"},
	} {
		t.Run(row.name, func(t *testing.T) {
			parsed, err := parse(row.cronJob.Spec.Schedule)
			if err != nil {
				t.Fatal(err)
			}
			got := timesOf(row.cronJob, parsed, time.UTC, at(row.now).Time)
			if got.tooMany != row.tooMany {
				t.Fatalf("too many missed: %t, want %t", got.tooMany, row.tooMany)
			}
			if clockOf(got.due) != row.due || clockOf(got.late) != row.late && row.late != "" {
				t.Errorf("due %s, too late %s; want %s, %s", clockOf(got.due), clockOf(got.late), row.due, row.late)
			}
			if !got.next.After(at(row.now).Time) {
				t.Errorf("the next time %v is not to come", got.next)
			}
		})
	}
}

// JOB-204: a fraction of a second counts.
func TestDeadlineIsExact(t *testing.T) {
	c := hello(schedule("0 * * * *"), deadline(200), last("08:00:00"))
	parsed, _ := parse(c.Spec.Schedule)
	for add, due := range map[time.Duration]bool{0: true, time.Millisecond: false, -time.Millisecond: true} {
		if got := timesOf(c, parsed, time.UTC, at("09:03:20").Add(add)); got.due.IsZero() == due {
			t.Errorf("%v after 200 seconds: due %v", add, got.due)
		}
	}
}

// JOB-217: without a time zone the schedule is read in that of the process.
func TestLocation(t *testing.T) {
	c := hello(schedule("0 10 * * *"))
	for zone, want := range map[string]string{"UTC": "10:00:00", "Europe/Kyiv": "08:00:00"} {
		in := input("07:59:45", c)
		in.Location = zoneOf(t, zone)
		if wake := clockOf(Decide(in).Wake); wake != want {
			t.Errorf("in %s it fires at %s UTC, want %s", zone, wake, want)
		}
	}
}

func clockOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.TimeOnly)
}

// counted counts how often a schedule is asked.
type counted struct {
	cron.Schedule
	asked *int
}

func (c counted) Next(t time.Time) time.Time {
	*c.asked++
	return c.Schedule.Next(t)
}

// However long ago the last start was, a decision takes a bounded number of steps.
func TestStepsAreBounded(t *testing.T) {
	for _, text := range []string{"* * * * *", "@hourly", "@yearly"} {
		for _, edits := range [][]edit{{}, {deadline(600)}, {deadline(1 << 40)}} {
			c := hello(edits...)
			c.CreationTimestamp = metav1.Unix(0, 0)
			parsed, err := parse(text)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			timesOf(c, counted{parsed, &asked}, time.UTC, at("08:00:00").Time)
			if asked > 105+40 {
				t.Errorf("%s asks %d times", text, asked)
			}
		}
	}
}

// JOB-230, JOB-231: with a deadline there are Jobs again as soon as the controller is.
func TestResumesAfterAnOutage(t *testing.T) {
	c := hello(last("08:29:00"), deadline(200))
	for _, now := range []string{"10:21:00", "10:22:00", "10:23:00"} {
		plan := Decide(input(now, c))
		if plan.started() != now {
			t.Fatalf("at %s it starts %q", now, plan.started())
		}
		c.Status = startedStatus(plan.Status, plan.Start, plan.Start.Job)
		c.Status.Active = nil
	}
}

// JOB-226, JOB-229, JOB-232: after an outage or a suspension, however long, the latest time is made up for at once,
// and an event reports the others; with --cronjob-too-many-missed=stop nothing is started until a user sets a
// deadline.
func TestTooManyMissed(t *testing.T) {
	const help = "Set or decrease .spec.startingDeadlineSeconds or check clock skew"
	for rule, want := range map[TooManyMissed]struct{ starts, says string }{
		StartLatest: {"10:21:00", "too many missed start times (> 100), only the latest is made up for. " + help},
		StartNone: {"", "Cannot determine if job needs to be started. Too many missed start time (> 100). " + help +
			"."},
	} {
		in := input("10:21:00", hello(last("08:29:00")))
		in.TooManyMissed = rule
		plan := Decide(in)
		if plan.started() != want.starts || len(plan.Events) != 1 || plan.Events[0].Reason != "TooManyMissedTimes" ||
			plan.Events[0].Type != "Warning" || plan.Events[0].Message != want.says {
			t.Errorf("%s: %+v", rule, plan)
		}
		promises := strings.Contains(said(in, plan), "waits for the next time of its schedule")
		if promises != (rule == StartLatest) {
			t.Errorf("%s: the account promises a next time: %v", rule, promises)
		}
		// What it says helps.
		in = input("10:21:00", hello(last("08:29:00"), deadline(200)))
		in.TooManyMissed = rule
		if plan := Decide(in); plan.started() != "10:21:00" || len(plan.Events) > 0 {
			t.Errorf("%s: with a deadline it starts %q and says %q", rule, plan.started(), plan.reasons())
		}
		// A hundred are not too many, one more is.
		for now, tooMany := range map[string]bool{"10:09:00": false, "10:10:00": true} {
			in = input(now, hello(last("08:29:00")))
			in.TooManyMissed = rule
			plan := Decide(in)
			stops, says := plan.started() == "", len(plan.Events) > 0
			if stops != (tooMany && rule == StartNone) || says != tooMany {
				t.Errorf("%s: at %s it starts %q and says %q", rule, now, plan.started(), plan.reasons())
			}
		}
	}
}
