package cronjob

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

type edit = func(*batchv1.CronJob)

// hello is the CronJob of JOB-187 after edits. It was made just before eight.
func hello(edits ...edit) *batchv1.CronJob {
	c := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", UID: "hello-uid",
			CreationTimestamp: at("07:59:30")},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", ConcurrencyPolicy: batchv1.AllowConcurrent, Suspend: ptr.To(false),
			SuccessfulJobsHistoryLimit: ptr.To[int32](3), FailedJobsHistoryLimit: ptr.To[int32](1),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "hello"},
					Annotations: map[string]string{"note": "x"}},
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "hello", Image: "busybox:1.28"}}}}},
			},
		},
	}
	for _, e := range edits {
		e(c)
	}
	return c
}

func schedule(text string) edit { return func(c *batchv1.CronJob) { c.Spec.Schedule = text } }

func deadline(seconds int64) edit {
	return func(c *batchv1.CronJob) { c.Spec.StartingDeadlineSeconds = &seconds }
}

func policy(p batchv1.ConcurrencyPolicy) edit {
	return func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = p }
}

// last says for when a Job was started last.
func last(clock string) edit {
	return func(c *batchv1.CronJob) { c.Status.LastScheduleTime = ptr.To(at(clock)) }
}

// active lists the Jobs as running.
func active(jobs ...*batchv1.Job) edit {
	return func(c *batchv1.CronJob) {
		for _, job := range jobs {
			c.Status.Active = append(c.Status.Active, referenceTo(job))
		}
	}
}

// day is a Monday.
const day = "2026-01-05"

// at is a time of that day, or of another.
func at(clock string) metav1.Time {
	if len(clock) == len("15:04:05") {
		clock = day + " " + clock
	}
	t, err := time.Parse(time.DateTime, clock)
	if err != nil {
		panic(err)
	}
	return metav1.Time{Time: t}
}

// run is a Job of the CronJob for a time; with an outcome it has ended half a minute later.
func run(clock string, outcome batchv1.JobConditionType) *batchv1.Job {
	start := at(clock)
	name := fmt.Sprintf("hello-%d", start.Unix()/60)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: start,
			Annotations:     map[string]string{batchv1.CronJobScheduledTimestampAnnotation: clock},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(hello(), kind)}},
		Status: batchv1.JobStatus{StartTime: &start},
	}
	if outcome == "" {
		return job
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: outcome, Status: corev1.ConditionTrue}}
	if outcome == batchv1.JobComplete {
		job.Status.CompletionTime = &metav1.Time{Time: start.Add(30 * time.Second)}
	}
	return job
}

// input is what a pass at that time sees.
func input(clock string, c *batchv1.CronJob, jobs ...*batchv1.Job) Input {
	return Input{Now: at(clock).Time, CronJob: c, Jobs: jobs, Location: time.UTC}
}

// reasons are the reasons of the plan's events.
func (p Plan) reasons() []string {
	var list []string
	for _, e := range p.Events {
		list = append(list, e.Reason)
	}
	return list
}

// started is the time of day for which the plan starts a Job; empty: none.
func (p Plan) started() string {
	if p.Start == nil {
		return ""
	}
	return p.Start.At.UTC().Format(time.TimeOnly)
}

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return location
}
