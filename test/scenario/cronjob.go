package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/test/mesh"
)

// everySecond fires at once, but has one Job a minute, since its name is the minute. The scenario manages the Jobs.
const everySecond = `apiVersion: batch/v1
kind: CronJob
metadata: {name: hello}
spec:
  schedule: "@every 1s"
  jobTemplate:
    metadata: {labels: {app: hello}}
    spec:
      managedBy: example.com/scenario
      template:
        spec:
          restartPolicy: OnFailure
          containers: [{name: hello, image: "busybox:1.28", command: [date]}]
`

// CronJobSchedule makes a CronJob that fires, shows it, suspends it, makes a Job of its template by hand, ends both
// Jobs, keeps no Job that succeeded, and deletes the CronJob with what is left.
//
// JOB-130 JOB-184 JOB-186 JOB-188 JOB-189 JOB-190 JOB-202 JOB-212 JOB-215
func CronJobSchedule(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	if got := w.KubectlWith(everySecond, "apply", "-f", "-"); got != "cronjob.batch/hello created\n" {
		t.Errorf("apply printed %q", got)
	}
	var fired batchv1.Job
	w.Await("a Job", func() Answer {
		jobs := listJobs(w, "app=hello")
		if len(jobs) == 0 {
			return "there is none"
		}
		fired = jobs[0]
		return ""
	})
	owner := metav1.GetControllerOf(&fired)
	minute := fired.CreationTimestamp.Unix() / 60
	if name := fmt.Sprint("hello-", minute); owner == nil || owner.Kind != "CronJob" || owner.Name != "hello" ||
		fired.Name != name && fired.Name != fmt.Sprint("hello-", minute-1) ||
		fired.Annotations[batchv1.CronJobScheduledTimestampAnnotation] == "" {
		t.Errorf("the Job is %+v", fired.ObjectMeta)
	}
	w.Kubectl("patch", "cronjob", "hello", "--patch", `{"spec":{"suspend":true}}`)
	w.Await("its line", func() Answer {
		row := strings.Fields(w.Kubectl("get", "cronjobs", "hello", "--no-headers"))
		if got := strings.Join(row[:5], " "); got != "hello @every 1s <none> True" || row[5] == "0" {
			return Saw(strings.Join(row, " "))
		}
		return ""
	})
	w.awaitOutput([]string{"Name:                          hello", "Schedule:                      @every 1s",
		"Suspend:                       True", "Active Jobs:         " + fired.Name, "SuccessfulCreate",
		"cronjob-controller", "Created job " + fired.Name}, "describe", "cronjobs/hello")

	if got := w.Kubectl("create", "job", "by-hand", "--from=cronjob/hello"); got != "job.batch/by-hand created\n" {
		t.Errorf("create job --from printed %q", got)
	}
	for _, job := range listJobs(w, "app=hello") {
		finishJob(w, &job)
	}
	w.Await("what it says of them", func() Answer {
		status := w.Kubectl("get", "cronjob", "hello", "--output=jsonpath={.status}")
		if strings.Contains(status, "active") || !strings.Contains(status, "lastSuccessfulTime") {
			return Saw(status)
		}
		return ""
	})
	w.awaitOutput([]string{"SawCompletedJob", "Saw completed job: " + fired.Name + ", condition: Complete"}, "describe",
		"cronjobs/hello")
	w.Kubectl("patch", "cronjob", "hello", "--patch", `{"spec":{"successfulJobsHistoryLimit":0}}`)
	w.awaitNothing("jobs")
	w.Kubectl("create", "job", "again", "--from=cronjob/hello")
	w.says(`cronjob.batch "hello" deleted from `+w.Namespace+` namespace`, "delete", "cronjob", "hello")
	w.awaitNothing("jobs", "cronjobs")
}

// CronJobCreate makes a CronJob by kubectl create, and shows what is refused.
//
// JOB-184 JOB-185 JOB-189 JOB-191 JOB-193
func CronJobCreate(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	create := func(name, schedule string) Result {
		return w.TryKubectl("", "create", "cronjob", name, "--image=busybox:1.28", "--schedule="+schedule, "--", "date")
	}
	if r := create("weekly", "0 3 * * 1"); r.Stdout != "cronjob.batch/weekly created\n" {
		t.Errorf("create printed %q, %q", r.Stdout, r.Stderr)
	}
	if row := strings.Fields(w.Kubectl("get", "cj", "weekly", "--no-headers")); strings.Join(row[:9], " ") !=
		"weekly 0 3 * * 1 <none> False 0" {
		t.Errorf("its line is %q", row)
	}
	for name, row := range map[string]struct{ name, schedule, want string }{
		"no schedule": {"daily", "0 24 * * *", "spec.schedule: Invalid value"},
		"too long":    {strings.Repeat("a", 53), "@daily", "must be no more than 52 characters"},
		"a zone":      {"zoned", "TZ=UTC 0 3 * * *", "use timeZone field instead"},
	} {
		if r := create(row.name, row.schedule); r.Code == 0 || !strings.Contains(r.Stderr, row.want) {
			t.Errorf("%s: status %d, %q", name, r.Code, r.Stderr)
		}
	}
}

// listJobs are the Jobs that the selector matches.
func listJobs(w *World, selector string) []batchv1.Job {
	w.Helper()
	list, err := w.Client.BatchV1().Jobs(w.Namespace).List(w.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// finishJob reports a Job as complete, as who manages it does.
func finishJob(w *World, job *batchv1.Job) {
	w.Helper()
	now := metav1.Now()
	job.Status = batchv1.JobStatus{Succeeded: 1, StartTime: &now, CompletionTime: &now}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: "True",
			LastTransitionTime: now})
	}
	patch, err := json.Marshal(map[string]any{"status": job.Status})
	if err != nil {
		w.Fatal(err)
	}
	// Others may have written the Job since it was read.
	if _, err := w.Client.BatchV1().Jobs(w.Namespace).Patch(w.Context(), job.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status"); err != nil {
		w.Fatal(fmt.Errorf("reporting Job %s as complete: %w", job.Name, err))
	}
}

// CronJobRuns has a CronJob run Pods, and the time to live of its Jobs take them away with what they ran.
//
// JOB-176 JOB-178 JOB-179 JOB-186 JOB-188
func CronJobRuns(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(`apiVersion: batch/v1
kind: CronJob
metadata: {name: ticks}
spec:
  schedule: "@every 2s"
  jobTemplate:
    spec:
      ttlSecondsAfterFinished: 3
      template:
        metadata: {labels: {of: ticks}}
        spec:
          restartPolicy: Never
          containers: [{name: main, image: `+Server+`, command: [echo, fired]}]
`, "apply", "-f", "-")
	w.Await("what a Pod of it says", func() Answer {
		said := w.TryKubectl("", "logs", "--selector=of=ticks", "--tail=1")
		if !strings.Contains(said.Stdout, "fired\n") {
			return Saw(said.Stdout + said.Stderr)
		}
		return ""
	})
	w.Await("the time of its success", func() Answer {
		if w.Kubectl("get", "cronjob", "ticks", "-o", "jsonpath={.status.lastSuccessfulTime}") == "" {
			return "there is none"
		}
		return ""
	})
	w.Kubectl("patch", "cronjob", "ticks", "--patch", `{"spec":{"suspend":true}}`)
	w.awaitNothing("jobs", "pods") // none of the last three goes for its number
}
