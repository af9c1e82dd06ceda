package resourcetest

import (
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// told collects the warnings that a client is told.
type told struct {
	mu   sync.Mutex // guards list
	list []string
}

func (w *told) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

// take returns what was told since the last time.
func (w *told) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	return list
}

func warned(t *testing.T, s *servertest.Server) (kubernetes.Interface, *told) {
	t.Helper()
	warnings, config := &told{}, s.ConfigAs(servertest.Admin)
	config.WarningHandler = warnings
	return must[*kubernetes.Clientset](t, "making a client")(kubernetes.NewForConfig(config)), warnings
}

func podOf(policy corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: policy,
		Containers: []corev1.Container{{Name: "pi", Image: "perl:5.34.0"}}}}
}

// What the server makes of a Job, and what becomes of its Pods when it is deleted.
func testJobs(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	client, warnings := warned(t, s)
	jobs := client.BatchV1().Jobs(s.Namespace(t, "jobs"))
	create := func(name string) *batchv1.Job {
		t.Helper()
		return must[*batchv1.Job](t, "creating")(jobs.Create(ctx,
			&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: batchv1.JobSpec{Template: podOf("Never")}}, metav1.CreateOptions{}))
	}
	// JOB-007, JOB-009, JOB-011, JOB-021, JOB-153: the labels, and the selector, are of the UID that the server gave.
	job := create("pi")
	read := must[*batchv1.Job](t, "reading")(jobs.Get(ctx, "pi", metav1.GetOptions{}))
	for _, j := range []*batchv1.Job{job, read} {
		uid := j.Spec.Selector.MatchLabels["batch.kubernetes.io/controller-uid"]
		if j.UID == "" || uid != string(j.UID) || j.Labels["batch.kubernetes.io/controller-uid"] != uid ||
			j.Spec.Template.Labels["batch.kubernetes.io/job-name"] != "pi" || j.Generation != 1 {
			t.Errorf("labels %v, selector %v of Job %s", j.Labels, j.Spec.Selector, j.UID)
		}
	}
	// JOB-147: suspended by a strategic merge patch. JOB-178: the lifetime of what has finished may change.
	if _, err := jobs.Patch(ctx, "pi", types.StrategicMergePatchType,
		[]byte(`{"spec":{"suspend":true,"ttlSecondsAfterFinished":0}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	read.Status = batchv1.JobStatus{Succeeded: 1, StartTime: &metav1.Time{Time: read.CreationTimestamp.Time},
		Conditions: []batchv1.JobCondition{{Type: "Complete", Status: "True"}}}
	read.ResourceVersion = ""
	_, err := jobs.UpdateStatus(ctx, read, metav1.UpdateOptions{})
	refusedAt(t, err, "status.completionTime")
	read.Status.Conditions = nil
	must[*batchv1.Job](t, "reporting")(jobs.UpdateStatus(ctx, read, metav1.UpdateOptions{}))
	for selector, want := range map[string]int{"status.successful=1": 1, "status.successful=0": 0} {
		list, err := jobs.List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil || len(list.Items) != want {
			t.Errorf("%s: %d Jobs, %v, want %d", selector, len(list.Items), err, want)
		}
	}
	if got := warnings.take(); len(got) != 0 {
		t.Errorf("warnings %q", got)
	}
	testJobDeletion(t, s, client, warnings, create("orphaning"), create("cascading"))
}

// JOB-113: without a word about them, a Job's Pods are kept; the client is told.
func testJobDeletion(t *testing.T, s *servertest.Server, client kubernetes.Interface, warnings *told,
	orphaning, cascading *batchv1.Job) {
	ctx, jobs := t.Context(), client.BatchV1().Jobs(orphaning.Namespace)
	// A finalizer of its own shows what else there is to do before it may go.
	for _, name := range []string{orphaning.Name, cascading.Name} {
		if _, err := jobs.Patch(ctx, name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":["example.com/seen"]}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name    string
		options metav1.DeleteOptions
		warned  bool
		orphan  bool
	}{
		{orphaning.Name, metav1.DeleteOptions{}, true, true},
		{cascading.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}, false,
			false},
	} {
		if err := jobs.Delete(ctx, row.name, row.options); err != nil {
			t.Fatal(err)
		}
		got := warnings.take()
		if row.warned != (len(got) == 1 && strings.HasPrefix(got[0], "child pods are preserved by default")) {
			t.Errorf("deleting %s: warnings %q", row.name, got)
		}
		job := must[*batchv1.Job](t, "reading")(jobs.Get(ctx, row.name, metav1.GetOptions{}))
		if slices.Contains(job.Finalizers, metav1.FinalizerOrphanDependents) != row.orphan {
			t.Errorf("deleting %s: finalizers %v", row.name, job.Finalizers)
		}
	}
	_, err := jobs.Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 64)},
		Spec: batchv1.JobSpec{Template: podOf("Never")}}, metav1.CreateOptions{})
	refusedAt(t, err, "metadata.name") // JOB-020
}
