package scenario

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// managedJob is a Job that the scenario manages.
const managedJob = `apiVersion: batch/v1
kind: Job
metadata: {name: pi}
spec:
  managedBy: example.com/scenario
  template:
    spec:
      restartPolicy: Never
      containers: [{name: pi, image: "perl:5.34.0"}]
`

// JobTTLAfterFinished finishes a Job, which stays, and then sets its time to live to 0: it is deleted with its
// Pod.
//
// POD-018 JOB-131 JOB-133 JOB-176 JOB-178 JOB-179
func JobTTLAfterFinished(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(managedJob, "apply", "-f", "-")
	job := listJobs(w, "")[0]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pi-1",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&job, batchJob)}},
		Spec: job.Spec.Template.Spec}
	if _, err := w.Client.CoreV1().Pods(w.Namespace).Create(w.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	finishJob(w, &job)
	w.awaitOutput([]string{"Complete"}, "get", "job", "pi")
	w.says("job.batch/pi patched", "patch", "job", "pi", "--patch", `{"spec":{"ttlSecondsAfterFinished":86400}}`)
	if jobs := listJobs(w, ""); len(jobs) != 1 || jobs[0].DeletionTimestamp != nil {
		t.Errorf("a day before its time it is gone: %v", jobs)
	}
	w.Kubectl("patch", "job", "pi", "--patch", `{"spec":{"ttlSecondsAfterFinished":0}}`)
	w.awaitNothing("jobs", "pods")
}

var batchJob = batchv1.SchemeGroupVersion.WithKind("Job")
