package scenario

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// pi is a Job whose Pod says a number and ends.
const pi = `apiVersion: batch/v1
kind: Job
metadata: {name: pi}
spec:
  backoffLimit: 4
  template:
    spec:
      restartPolicy: Never
      containers: [{name: pi, image: ` + Server + `, command: [sh, -c, "echo 3.14159", "exit 0"]}]
`

// JobCompletion runs a Job to its end, shows it, and deletes it with its Pod.
//
// POD-014 JOB-002 JOB-006 JOB-013 JOB-014 JOB-015 JOB-016 JOB-018 JOB-111 JOB-112
func JobCompletion(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	if got := w.KubectlWith(pi, "apply", "-f", "-"); got != "job.batch/pi created\n" {
		t.Errorf("apply printed %q", got)
	}
	w.says("job.batch/pi condition met", "wait", "--for=condition=Complete", "job/pi", "--timeout=60s")
	name := w.Kubectl("get", "pods", "--selector=batch.kubernetes.io/job-name=pi",
		"--output=jsonpath={.items[*].metadata.name}")
	if !regexp.MustCompile(`^pi-[a-z0-9]{5}$`).MatchString(name) {
		t.Errorf("the Pod is called %q", name)
	}
	w.awaitOutput([]string{"Name:             pi\n", "Selector:         batch.kubernetes.io/controller-uid=",
		"Parallelism:      1", "Completions:      1", "Start Time:", "Completed At:", "Duration:",
		"Pods Statuses:    0 Active (0 Ready) / 1 Succeeded / 0 Failed", "Pod Template:", "SuccessfulCreate",
		"job-controller", "Created pod: " + name, "Completed", "Job completed"}, "describe", "job", "pi")
	row := strings.Fields(w.Kubectl("get", "jobs", "pi", "--no-headers"))
	if got := strings.Join(row[:3], " "); got != "pi Complete 1/1" {
		t.Errorf("get jobs prints %v", row)
	}
	if got := w.Kubectl("get", "pods", "--no-headers"); !strings.Contains(got, "Completed") {
		t.Errorf("get pods prints %s", got)
	}
	w.says(`job.batch "pi" deleted from `+w.Namespace+` namespace`, "delete", "job", "pi")
	w.awaitNothing("pods", "jobs")
}

// JobSuspended suspends a Job, sends its Pods elsewhere, resumes it and lets it end; the Pods that were ended by that
// count for nothing.
//
// JOB-003 JOB-141 JOB-142 JOB-143 JOB-144 JOB-147 JOB-148 JOB-152
func JobSuspended(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(`apiVersion: batch/v1
kind: Job
metadata: {name: myjob}
spec:
  parallelism: 1
  completions: 5
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: `+Server+`}]
`, "apply", "-f", "-")
	w.awaitActive("job-name=myjob", 1)
	suspend := func(yes bool) {
		w.Kubectl("patch", "job/myjob", "--type=strategic", "--patch", fmt.Sprintf(`{"spec":{"suspend":%t}}`, yes))
	}
	suspend(true)
	w.Kubectl("wait", "--for=condition=Suspended", "job/myjob", "--timeout=60s")
	w.awaitNothing("pods")
	w.Await("the Job to rest", func() Answer {
		return Left(w.Kubectl("get", "job", "myjob", "-o", "jsonpath={.status.startTime}{.status.active}"))
	})
	w.Kubectl("patch", "job/myjob", "--patch", `{"spec":{"template":{"metadata":{"labels":{"directed":"yes"}}}}}`)
	suspend(false)
	w.awaitActive("job-name=myjob,directed=yes", 1)
	job, err := w.Client.BatchV1().Jobs(w.Namespace).Get(w.Context(), "myjob", metav1.GetOptions{})
	if err != nil || job.Status.Failed != 0 || job.Status.Succeeded != 0 {
		t.Errorf("resumed: %v, status %+v", err, job.Status)
	}
	described := w.Kubectl("describe", "jobs/myjob")
	at := 0
	for _, reason := range []string{"SuccessfulCreate", "SuccessfulDelete", "Suspended", "SuccessfulCreate",
		"Resumed"} {
		next := strings.Index(described[at:], reason)
		if next < 0 {
			t.Fatalf("%s does not follow in\n%s", reason, described)
		}
		at += next + len(reason)
	}
}

// JobFails runs a Job that always fails, and one that another policy ends at the first failure.
//
// JOB-055 JOB-066 JOB-067 JOB-091 JOB-095 JOB-096 JOB-121
func JobFails(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(`apiVersion: batch/v1
kind: Job
metadata: {name: failing}
spec:
  backoffLimit: 1
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: `+Server+`, command: [sh, -c, "exit 3"]}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: policy}
spec:
  completions: 12
  parallelism: 3
  podFailurePolicy:
    rules: [{action: FailJob, onExitCodes: {containerName: main, operator: In, values: [42]}}]
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: `+Server+`, command: [sh, -c, "exit 42"]}]
`, "apply", "-f", "-")
	for name, want := range map[string]struct {
		reason, message string
		failed          int32
	}{
		"policy": {"PodFailurePolicy", "Container main for pod " + w.Namespace + "/policy-", 3},
		// The second Pod comes 10 s after the first.
		"failing": {"BackoffLimitExceeded", "Job has reached the specified backoff limit", 2},
	} {
		w.Kubectl("wait", "--for=condition=Failed", "job/"+name, "--timeout=60s")
		job, err := w.Client.BatchV1().Jobs(w.Namespace).Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[batchv1.JobConditionType]bool{}
		for _, c := range job.Status.Conditions {
			kinds[c.Type] = c.Status == corev1.ConditionTrue
			if c.Reason != want.reason || !strings.HasPrefix(c.Message, want.message) {
				t.Errorf("Job %s: condition %+v", name, c)
			}
		}
		if !kinds[batchv1.JobFailureTarget] || !kinds[batchv1.JobFailed] || kinds[batchv1.JobComplete] ||
			job.Status.Failed != want.failed || job.Status.CompletionTime != nil {
			t.Errorf("Job %s: status %+v", name, job.Status)
		}
	}
}

// IndexedJob runs a Job of 20 indexes with real containers: one index fails for good by a policy, one fails as often as
// it may, the others say which they are.
//
// JOB-017 JOB-031 JOB-048 JOB-049 JOB-070 JOB-071 JOB-072 JOB-094
func IndexedJob(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(`apiVersion: batch/v1
kind: Job
metadata: {name: many}
spec:
  completions: 20
  parallelism: 7
  completionMode: Indexed
  backoffLimitPerIndex: 1
  podFailurePolicy:
    rules:
    - {action: FailIndex, onExitCodes: {operator: In, values: [42]}}
    - {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: `+Server+`
        command:
        - sh
        - -c
        - |
          echo "$(hostname) has $JOB_COMPLETION_INDEX"
          case $JOB_COMPLETION_INDEX in 3) exit 42;; 5) exit 1;; esac
`, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Failed", "job/many", "--timeout=90s")
	job, err := w.Client.BatchV1().Jobs(w.Namespace).Get(w.Context(), "many", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := job.Status
	if s.CompletedIndexes != "0-2,4,6-19" || s.FailedIndexes == nil || *s.FailedIndexes != "3,5" || s.Succeeded != 18 ||
		s.Failed != 3 {
		t.Errorf("status %+v", s)
	}
	for _, c := range s.Conditions {
		if c.Reason != "FailedIndexes" || c.Message != "Job has failed indexes" {
			t.Errorf("condition %+v", c)
		}
	}
	for _, index := range []string{"2", "19"} {
		pod := w.Kubectl("get", "pods", "-l", "batch.kubernetes.io/job-completion-index="+index,
			"-o", "jsonpath={.items[*].metadata.name}")
		if got, want := w.Kubectl("logs", pod), "many-"+index+" has "+index+"\n"; got != want {
			t.Errorf("index %s prints %q, want %q", index, got, want)
		}
	}

	w.says("job.batch/hello created", "create", "job", "hello", "--image="+Server, "--", "echo", "hello")
	w.Kubectl("wait", "--for=condition=Complete", "job/hello", "--timeout=60s")
	if got := w.Kubectl("logs", "job/hello"); got != "hello\n" {
		t.Errorf("logs of the Job are %q", got)
	}
}
