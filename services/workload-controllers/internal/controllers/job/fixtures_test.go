package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/conditions"
)

var start = time.Unix(1_700_000_000, 0)

func ptrTo[T any](value T) *T { return &value }

// edit changes a Job of a row.
type edit func(*batchv1.Job)

// newJob returns a Job of one Pod at a time that has been running for a minute.
func newJob(edits ...edit) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pi", UID: "job-uid", ResourceVersion: "1"},
		Spec: batchv1.JobSpec{
			Parallelism: ptrTo[int32](1), Completions: ptrTo[int32](1), BackoffLimit: ptrTo[int32](6),
			CompletionMode: ptrTo(batchv1.NonIndexedCompletion),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"job": "pi"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"job": "pi"}},
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{Name: "main", Image: "perl:5.34.0"}}},
			},
		},
		Status: batchv1.JobStatus{
			StartTime: ptrTo(metav1.NewTime(start.Add(-time.Minute))), Ready: ptrTo[int32](0),
			Terminating: ptrTo[int32](0), UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
		},
	}
	for _, change := range edits {
		change(job)
	}
	return job
}

func parallel(parallelism, completions int32) edit {
	return func(job *batchv1.Job) {
		job.Spec.Parallelism, job.Spec.Completions = &parallelism, &completions
	}
}

func workQueue(parallelism int32) edit {
	return func(job *batchv1.Job) { job.Spec.Parallelism, job.Spec.Completions = &parallelism, nil }
}

func indexed(parallelism, completions int32) edit {
	return func(job *batchv1.Job) {
		parallel(parallelism, completions)(job)
		job.Spec.CompletionMode = ptrTo(batchv1.IndexedCompletion)
	}
}

func perIndex(limit int32) edit {
	return func(job *batchv1.Job) {
		job.Spec.BackoffLimitPerIndex, job.Spec.BackoffLimit = &limit, ptrTo[int32](2147483647)
		job.Status.FailedIndexes = ptrTo("")
	}
}

func backoffLimit(limit int32) edit {
	return func(job *batchv1.Job) { job.Spec.BackoffLimit = &limit }
}

func suspended(job *batchv1.Job) { job.Spec.Suspend = ptrTo(true) }

func replacing(policy batchv1.PodReplacementPolicy) edit {
	return func(job *batchv1.Job) { job.Spec.PodReplacementPolicy = &policy }
}

func policy(rules ...batchv1.PodFailurePolicyRule) edit {
	return func(job *batchv1.Job) { job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: rules} }
}

func status(change func(*batchv1.JobStatus)) edit {
	return func(job *batchv1.Job) { change(&job.Status) }
}

func deadline(seconds int64) edit {
	return func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = &seconds }
}

func deleted(job *batchv1.Job) { job.DeletionTimestamp = ptrTo(metav1.NewTime(start)) }

func onFailure(job *batchv1.Job) {
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
}

func condition(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) edit {
	return func(job *batchv1.Job) {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: status,
			Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(start.Add(-time.Second))})
	}
}

// newPod reads a Pod: its name, its phase and what else is to be said of it, one word each:
//
//	deleting  is being deleted
//	untracked has no finalizer
//	index=2   has the index, failed=3 as many failures before it, ignored=1 as many that were ignored
//	exit=42   its container main has ended with this code
//	ended=5   so many seconds ago (0 without it)
//	restarts=3, ready, relabelled, disrupted
func newPod(text string) *corev1.Pod {
	words := strings.Fields(text)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: words[0], UID: types.UID(words[0]),
			ResourceVersion: "5", Labels: map[string]string{"job": "pi"}, Annotations: map[string]string{},
			Finalizers: []string{tracking}, CreationTimestamp: metav1.NewTime(start.Add(-time.Hour)),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "pi", UID: "job-uid",
				Controller: ptrTo(true)}}},
		Spec:   corev1.PodSpec{NodeName: "node"},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(words[1])},
	}
	container := corev1.ContainerStatus{Name: "main"}
	end := &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(start)}
	if pod.Status.Phase == corev1.PodFailed {
		end.ExitCode = 1
	}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		var n int
		_, _ = fmt.Sscan(value, &n)
		switch name {
		case "deleting":
			pod.DeletionTimestamp = ptrTo(metav1.NewTime(start))
		case "untracked":
			pod.Finalizers = nil
		case "index":
			pod.Annotations[batchv1.JobCompletionIndexAnnotation] = value
		case "failed":
			pod.Annotations[batchv1.JobIndexFailureCountAnnotation] = value
		case "ignored":
			pod.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = value
		case "exit":
			end.ExitCode = int32(n)
		case "ended":
			end.FinishedAt = metav1.NewTime(start.Add(-time.Duration(n) * time.Second))
		case "restarts":
			container.RestartCount = int32(n)
		case "relabelled":
			pod.Labels = map[string]string{"job": "other"}
		case "ready":
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady,
				Status: corev1.ConditionTrue})
		case "disrupted":
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget,
				Status: corev1.ConditionTrue})
		default:
			panic("newPod does not know " + word)
		}
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		container.State.Terminated = end
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{container}
	return pod
}

// inputOf returns what a pass observes of a Job with such Pods, one a line or separated by semicolons.
func inputOf(job *batchv1.Job, pods string) Input {
	selector, _ := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	in := Input{Now: start, Job: job, Selector: selector}
	var all []*corev1.Pod
	for text := range strings.SplitSeq(pods, ";") {
		if strings.TrimSpace(text) != "" {
			all = append(all, newPod(text))
		}
	}
	in.Ended = endings(all)
	for _, pod := range all {
		if openPods.Holds(pod) || isTracked(pod) {
			in.Pods = append(in.Pods, pod)
		}
	}
	return in
}

// describe tells a plan in words: its effects, and what of the status is new.
func describe(in Input, plan Plan) string {
	parts := []string{string(plan.Reason)}
	list := func(what string, pods []*corev1.Pod) {
		if len(pods) > 0 {
			parts = append(parts, what+" "+strings.Join(names(pods), " "))
		}
	}
	list("adopt", plan.Adopt)
	list("release", plan.Release)
	list("record", plan.Recorded)
	list("untrack", plan.Untrack)
	list("remove", plan.Remove)
	list("end", plan.End)
	if n := len(plan.Create); n > 0 && plan.Create[0].Index == noIndex {
		parts = append(parts, fmt.Sprint("create ", n))
	}
	for _, c := range plan.Create {
		if c.Index != noIndex {
			parts = append(parts, fmt.Sprintf("create %d/%d/%d", c.Index, c.attempt.failures, c.attempt.ignored))
		}
	}
	for _, c := range plan.Status.Conditions {
		had := conditions.Job.Find(in.Job.Status.Conditions, c.Type)
		if had == nil || had.Status != c.Status {
			parts = append(parts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	for _, e := range plan.Events {
		parts = append(parts, fmt.Sprintf("%s event %s: %s", e.Type, e.Reason, e.Message))
	}
	if !plan.Wake.IsZero() {
		parts = append(parts, fmt.Sprint("wake in ", plan.Wake.Sub(in.Now)))
	}
	return strings.Join(parts, "; ")
}

func names(pods []*corev1.Pod) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return slices.Sorted(slices.Values(all))
}

// row is a Job with its Pods and what a pass over it does.
type row struct {
	name string
	job  *batchv1.Job
	pods string
	want string
}
