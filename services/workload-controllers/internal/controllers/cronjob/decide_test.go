package cronjob

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

func TestDecide(t *testing.T) {
	running, manual := run("08:00:00", ""), run("07:00:00", "")
	manual.Annotations = map[string]string{"cronjob.kubernetes.io/instantiate": "manual"}
	leaving := run("07:59:00", "")
	leaving.DeletionTimestamp = ptr.To(at("08:00:30"))
	suspended := func(c *batchv1.CronJob) { c.Spec.Suspend = ptr.To(true) }
	untold := run("08:00:00", "Failed")
	untold.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = at("08:00:00").Format(time.RFC3339)
	none := func(c *batchv1.CronJob) { c.Spec.FailedJobsHistoryLimit = ptr.To[int32](0) }
	for _, row := range []struct {
		name    string
		in      Input
		starts  string
		replace []string
		reasons []string
		active  []string
		last    string
		wake    string
	}{
		{name: "JOB-187 nothing due", in: input("07:59:45", hello()), wake: "08:00:00"},
		{name: "JOB-187 due", in: input("08:00:00", hello()), starts: "08:00:00", wake: "08:01:00"},
		{name: "JOB-208 beside one that runs", in: input("08:01:00", hello(last("08:00:00"), active(running)), running),
			starts: "08:01:00", active: []string{running.Name}, last: "08:00:00", wake: "08:02:00"},
		{name: "JOB-209 not beside one that runs", in: input("08:01:00",
			hello(policy("Forbid"), last("08:00:00"), active(running)), running),
			reasons: []string{"JobAlreadyActive"}, active: []string{running.Name}, last: "08:00:00", wake: "08:02:00"},
		{name: "JOB-209 late, once it has ended", in: input("08:01:30",
			hello(policy("Forbid"), deadline(200), last("08:00:00"), active(running)), run("08:00:00", "Complete")),
			starts: "08:01:00", reasons: []string{"SawCompletedJob"}, last: "08:00:00", wake: "08:02:00"},
		{name: "JOB-209 too late, once it has ended", in: input("08:01:30",
			hello(policy("Forbid"), schedule("0-1 8 * * *"), deadline(20), last("08:00:00"), active(running)),
			run("08:00:00", "Complete")),
			reasons: []string{"SawCompletedJob", "MissSchedule"}, last: "08:00:00", wake: "08:00:00"},
		{name: "JOB-210 in place of the one that runs", in: input("08:01:00",
			hello(policy("Replace"), last("08:00:00"), active(running)), running),
			starts: "08:01:00", replace: []string{running.Name}, active: []string{running.Name}, last: "08:00:00",
			wake: "08:02:00"},
		{name: "JOB-210 one that goes already", in: input("08:01:00",
			hello(policy("Replace"), last("08:00:00"), active(leaving)), leaving),
			starts: "08:01:00", replace: []string{}, active: []string{leaving.Name}, last: "08:00:00",
			wake: "08:02:00"},
		{name: "JOB-211 a person's Job is none of the schedule", in: input("08:01:00",
			hello(policy("Forbid"), last("08:00:00")), manual), starts: "08:01:00", last: "08:00:00", wake: "08:02:00"},
		{name: "JOB-212, JOB-213 suspended", in: input("08:01:00",
			hello(suspended, last("08:00:00"), active(running)), running), active: []string{running.Name},
			last: "08:00:00"},
		{name: "JOB-214 and going again", in: input("08:31:20", hello(last("08:00:00"))), starts: "08:31:00",
			last: "08:00:00", wake: "08:32:00"},
		{name: "JOB-186 the Job is there already", in: input("08:00:05", hello(), running),
			active: []string{running.Name}, last: "08:00:00", wake: "08:01:00"},
		{name: "JOB-225 a Job that has ended is told of before it is deleted", in: input("08:00:40", hello(none),
			untold),
			last: "08:00:00", wake: "08:00:40"},
		{name: "a Job of a time to come", in: input("07:59:59", hello(), untold), wake: "08:00:00"},
		{name: "a forgotten Job is listed again", in: input("08:00:30", hello(last("08:00:00")), running),
			active: []string{running.Name}, last: "08:00:00", wake: "08:01:00"},
		{name: "a lost Job is listed no more", in: input("08:00:30", hello(last("08:00:00"), active(running))),
			reasons: []string{"MissingJob"}, last: "08:00:00", wake: "08:01:00"},
		{name: "JOB-228 as many passed by as one ran", in: input("09:40:00",
			hello(policy("Forbid"), last("08:00:00"), active(running)), running), reasons: []string{"JobAlreadyActive"},
			active: []string{running.Name}, last: "08:00:00", wake: "09:41:00"},
		{name: "JOB-228 more passed by as one ran", in: input("09:41:00",
			hello(policy("Forbid"), last("08:00:00"), active(running)), running),
			reasons: []string{"JobAlreadyActive"},
			active:  []string{running.Name}, last: "08:00:00", wake: "09:42:00"},
		{name: "JOB-232 suspended for half a day and going again", in: input("20:30:00", hello(last("08:00:00"))),
			starts: "20:30:00", reasons: []string{"TooManyMissedTimes"}, last: "08:00:00", wake: "20:31:00"},
		{name: "JOB-190 a Job has failed", in: input("08:00:30", hello(last("08:00:00"), active(running)),
			run("08:00:00", "Failed")), reasons: []string{"SawCompletedJob"}, last: "08:00:00", wake: "08:01:00"},
		{name: "JOB-190 no schedule", in: input("08:00:00", hello(schedule("x"))),
			reasons: []string{"UnparseableSchedule"}},
		{name: "JOB-206 the run is lost, nothing is made", in: input("08:05:00",
			hello(schedule("0 * * * *"), deadline(60))), reasons: []string{"MissSchedule"}, wake: "09:00:00"},
		{name: "on its way out", in: input("08:00:00", hello(func(c *batchv1.CronJob) {
			c.DeletionTimestamp = ptr.To(at("07:59:50"))
		}))},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := row.in.CronJob.DeepCopy()
			plan := Decide(row.in)
			if plan.started() != row.starts || !slices.Equal(plan.reasons(), row.reasons) ||
				clockOf(plan.Wake) != row.wake {
				t.Errorf("starts %q, says %q, again at %s; want %q, %q, %s", plan.started(), plan.reasons(),
					clockOf(plan.Wake), row.starts, row.reasons, row.wake)
			}
			if len(plan.Delete) > 0 {
				t.Errorf("deletes %v", names(plan.Delete))
			}
			var replaced, running []string
			if plan.Start != nil && plan.Start.Replaced != nil {
				replaced = names(plan.Start.Replaced)
			}
			for _, reference := range plan.Status.Active {
				running = append(running, reference.Name)
			}
			if !slices.Equal(replaced, row.replace) || !slices.Equal(running, row.active) {
				t.Errorf("replaces %v, active %v; want %v, %v", replaced, running, row.replace, row.active)
			}
			lastTime := ""
			if plan.Status.LastScheduleTime != nil {
				lastTime = clockOf(plan.Status.LastScheduleTime.Time)
			}
			if lastTime != row.last {
				t.Errorf("last schedule time %s, want %s", lastTime, row.last)
			}
			if !equality.Semantic.DeepEqual(before, row.in.CronJob) {
				t.Error("the decision changed its input")
			}
			if again := Decide(row.in); !equality.Semantic.DeepEqual(plan.Status, again.Status) {
				t.Error("the same input, another status")
			}
		})
	}
}

func names(jobs []*batchv1.Job) []string {
	list := []string{}
	for _, job := range jobs {
		list = append(list, job.Name)
	}
	return list
}

// JOB-218: a zone that is not known any more keeps Jobs from being started.
func TestUnknownTimeZone(t *testing.T) {
	in := input("08:00:00", hello(func(c *batchv1.CronJob) { c.Spec.TimeZone = ptr.To("Europe/Gone") }))
	in.Location, in.LocationError = nil, errors.New("unknown time zone Europe/Gone")
	plan := Decide(in)
	if plan.Start != nil || !slices.Equal(plan.reasons(), []string{"UnknownTimeZone"}) ||
		plan.Events[0].Message != `invalid timeZone: "Europe/Gone": unknown time zone Europe/Gone` {
		t.Errorf("%+v", plan)
	}
}

// JOB-186, JOB-188, JOB-202, JOB-224: what the Job is made from.
func TestJob(t *testing.T) {
	c := hello()
	job := Decide(input("08:00:03", c)).Start.Job
	owner := job.OwnerReferences[0]
	if job.Name != fmt.Sprintf("hello-%d", at("08:00:00").Unix()/60) || job.Namespace != "default" ||
		len(job.OwnerReferences) != 1 || owner.Kind != "CronJob" || owner.APIVersion != "batch/v1" ||
		owner.UID != "hello-uid" || owner.Name != "hello" || !*owner.Controller {
		t.Errorf("%+v", job.ObjectMeta)
	}
	if got := job.Annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]; got != day+"T08:00:00Z" {
		t.Errorf("scheduled for %s", got)
	}
	if job.Labels["app"] != "hello" || job.Annotations["note"] != "x" || len(job.Annotations) != 2 ||
		job.Spec.Template.Spec.Containers[0].Image != "busybox:1.28" {
		t.Errorf("not from its template: %+v", job)
	}
	job.Labels["app"], job.Spec.Template.Spec.Containers[0].Image = "y", "z"
	if c.Spec.JobTemplate.Labels["app"] != "hello" || c.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image == "z" {
		t.Error("the Job shares memory with the CronJob")
	}
	in := input("08:00:03", hello(func(c *batchv1.CronJob) { c.Spec.TimeZone = ptr.To("Europe/Kyiv") }))
	in.Location = zoneOf(t, "Europe/Kyiv")
	if got := Decide(in).Start.Job.Annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]; got !=
		day+"T10:00:00+02:00" {
		t.Errorf("in Kyiv scheduled for %s", got)
	}
}

// JOB-215, JOB-216.
func TestHistory(t *testing.T) {
	var jobs []*batchv1.Job
	for _, minute := range []string{"5", "1", "4", "2", "3"} {
		jobs = append(jobs, run("08:0"+minute+":00", "Complete"), run("08:1"+minute+":00", "Failed"))
	}
	unended, leaving := run("08:00:00", ""), run("08:00:30", "Complete")
	leaving.DeletionTimestamp = ptr.To(at("08:20:00"))
	unstarted := run("07:00:00", "Failed")
	unstarted.Status.StartTime = nil
	jobs = append(jobs, unended, leaving, unstarted)
	limits := func(succeeded, failed *int32) edit {
		return func(c *batchv1.CronJob) {
			c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = succeeded, failed
			c.Spec.Suspend = ptr.To(true)
		}
	}
	name := func(clocks ...string) []string {
		list := []string{}
		for _, clock := range clocks {
			list = append(list, run(clock+":00", "").Name)
		}
		return list
	}
	n := ptr.To[int32]
	for _, row := range []struct {
		name string
		edit edit
		want []string
	}{
		{"JOB-215, JOB-216 the defaults", limits(n(3), n(1)), name("08:01", "08:02", "07:00", "08:11", "08:12", "08:13",
			"08:14")},
		{"JOB-215 none of the one kind", limits(n(0), n(6)), name("08:01", "08:02", "08:03", "08:04", "08:05")},
		{"JOB-216 none of the other", limits(n(5), n(0)), name("07:00", "08:11", "08:12", "08:13", "08:14", "08:15")},
		{"more than there are", limits(n(9), n(9)), name()},
		{"no limits", limits(nil, nil), name()},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := names(Decide(input("08:30:00", hello(row.edit), jobs...)).Delete); !slices.Equal(got, row.want) {
				t.Errorf("deletes %v, want %v", got, row.want)
			}
		})
	}
}

// JOB-189: the last success is the latest, and stays when its Job is gone.
func TestLastSuccessfulTime(t *testing.T) {
	c := hello(last("08:04:00"), func(c *batchv1.CronJob) { c.Status.LastSuccessfulTime = ptr.To(at("08:02:30")) })
	failed := run("08:04:00", "Failed")
	failed.Status.CompletionTime = ptr.To(at("08:09:00"))
	for want, jobs := range map[string][]*batchv1.Job{
		"08:02:30": {run("08:01:00", "Complete"), failed},
		"08:03:30": {run("08:03:00", "Complete"), run("08:01:00", "Complete")},
	} {
		if got := Decide(input("08:04:30", c, jobs...)).Status.LastSuccessfulTime; clockOf(got.Time) != want {
			t.Errorf("last success %v, want %s", got, want)
		}
	}
}

// A run of days: each minute has its Job, whatever moment the passes happen at.
func TestEveryMinuteHasItsJob(t *testing.T) {
	c, made := hello(), map[string]bool{}
	var jobs []*batchv1.Job
	now := at("07:59:45").Time
	for range 600 {
		in := Input{Now: now, CronJob: c, Jobs: jobs, Location: time.UTC}
		plan := Decide(in)
		if plan.Start != nil {
			if made[plan.Start.Job.Name] {
				t.Fatalf("Job %s is made twice", plan.Start.Job.Name)
			}
			made[plan.Start.Job.Name] = true
			c = c.DeepCopy()
			c.Status = startedStatus(plan.Status, plan.Start, plan.Start.Job)
		}
		wait := plan.Wake.Sub(now)
		if wait <= 0 || wait > time.Minute {
			t.Fatalf("at %v it waits %v", now, wait)
		}
		now = now.Add(wait + 300*time.Millisecond)
	}
	if len(made) != 599 {
		t.Errorf("%d Jobs in 599 minutes", len(made))
	}
}
