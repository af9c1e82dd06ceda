package job

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// JOB-158, JOB-015, JOB-134: what the Pods of a Job are made from.
func TestPods(t *testing.T) {
	job := newJob()
	job.Spec.Template.Finalizers = []string{"example.com/own"}
	pod := podOf(job, prototype(job), Creation{Index: noIndex})
	if pod.GenerateName != "pi-" || pod.Namespace != "default" || pod.Labels["job"] != "pi" ||
		pod.Spec.Containers[0].Image != "perl:5.34.0" {
		t.Errorf("Pod %+v", pod)
	}
	if got := strings.Join(pod.Finalizers, " "); got != "example.com/own "+batchv1.JobTrackingFinalizer {
		t.Errorf("finalizers %s", got)
	}
	if owner := pod.OwnerReferences; len(owner) != 1 || owner[0].Kind != "Job" || owner[0].APIVersion != "batch/v1" ||
		owner[0].UID != "job-uid" || !*owner[0].Controller {
		t.Errorf("owners %+v", owner)
	}
	if pod.Spec.Hostname != "" || len(pod.Annotations) > 0 || len(pod.Spec.Containers[0].Env) > 0 {
		t.Errorf("without an index the Pod is %+v", pod)
	}
	if len(job.Spec.Template.Finalizers) != 1 {
		t.Error("the Job changed")
	}
	job.Spec.Template.Finalizers = []string{tracking}
	if got := prototype(job).Finalizers; len(got) != 1 {
		t.Errorf("finalizers %v", got)
	}
}

// JOB-046, JOB-047, JOB-048, JOB-049, JOB-050, JOB-081
func TestIndexedPods(t *testing.T) {
	job := newJob(indexed(3, 3))
	job.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	job.Spec.Template.Spec.Containers = append(job.Spec.Template.Spec.Containers, corev1.Container{Name: "own",
		Env: []corev1.EnvVar{{Name: "JOB_COMPLETION_INDEX", Value: "mine"}}})
	before := job.DeepCopy()
	alike := prototype(job)
	other := podOf(job, alike, Creation{Index: 1})
	pod := podOf(job, alike, Creation{Index: 2})
	if pod.GenerateName != "pi-2-" || pod.Spec.Hostname != "pi-2" ||
		pod.Annotations["batch.kubernetes.io/job-completion-index"] != "2" ||
		pod.Labels["batch.kubernetes.io/job-completion-index"] != "2" || pod.Labels["job"] != "pi" {
		t.Errorf("Pod %+v", pod)
	}
	if other.Labels["batch.kubernetes.io/job-completion-index"] != "1" || other.Spec.Hostname != "pi-1" {
		t.Errorf("the other Pod is %+v", other)
	}
	for _, c := range []corev1.Container{pod.Spec.InitContainers[0], pod.Spec.Containers[0]} {
		if len(c.Env) != 1 || c.Env[0].Name != "JOB_COMPLETION_INDEX" || c.Env[0].ValueFrom.FieldRef.FieldPath !=
			"metadata.labels['batch.kubernetes.io/job-completion-index']" {
			t.Errorf("container %s has %+v", c.Name, c.Env)
		}
	}
	if own := pod.Spec.Containers[1].Env; len(own) != 1 || own[0].Value != "mine" {
		t.Errorf("a container's own variable became %+v", own)
	}
	if len(pod.Annotations) != 1 {
		t.Errorf("annotations %v", pod.Annotations)
	}
	if before.String() != job.String() {
		t.Error("the Job changed")
	}
	job.Spec.BackoffLimitPerIndex = ptrTo[int32](5)
	pod = podOf(job, alike, Creation{Index: 2, attempt: attempt{failures: 3, ignored: 1}})
	if pod.Annotations["batch.kubernetes.io/job-index-failure-count"] != "3" ||
		pod.Annotations["batch.kubernetes.io/job-index-ignored-failure-count"] != "1" {
		t.Errorf("annotations %v", pod.Annotations)
	}
}

// JOB-050: the index stays in the name of a Pod however long the Job's name is.
func TestLongNames(t *testing.T) {
	job := newJob(indexed(1, 200000))
	job.Name = strings.Repeat("x", 56)
	pod := podOf(job, prototype(job), Creation{Index: 123456})
	if want := strings.Repeat("x", 50) + "-123456-"; pod.GenerateName != want {
		t.Errorf("the name begins with %s, want %s", pod.GenerateName, want)
	}
	if pod.Spec.Hostname != job.Name+"-123456" {
		t.Errorf("hostname %s", pod.Spec.Hostname)
	}
}
