package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/backoff"
	"keelson.dev/kit/podview"
)

// retry is the delay between a failure and the next Pod, by the number of consecutive failures.
var retry = backoff.Policy{First: 10 * time.Second, Max: 6 * time.Minute}

// Ended is how and when a Pod has ended.
type Ended struct {
	At     time.Time
	Failed bool
}

// endings returns how and when Pods ended. A Pod that is being deleted delays nothing.
func endings(pods []*corev1.Pod) []Ended {
	var ended []Ended
	for _, pod := range pods {
		if podview.IsTerminal(pod) && !podview.IsTerminating(pod) {
			ended = append(ended, Ended{At: endedAt(pod), Failed: pod.Status.Phase == corev1.PodFailed})
		}
	}
	return ended
}

// retryAt returns from when on the next Pod may be created. It counts the failures since the last success among the
// existing Pods.
func retryAt(ended []Ended) time.Time {
	var succeeded, failed time.Time
	for _, e := range ended {
		if !e.Failed && e.At.After(succeeded) {
			succeeded = e.At
		}
	}
	failures := 0
	for _, e := range ended {
		if !e.Failed || !e.At.After(succeeded) {
			continue
		}
		failures++
		if e.At.After(failed) {
			failed = e.At
		}
	}
	if failures == 0 {
		return time.Time{}
	}
	return failed.Add(retry.Delay(failures))
}

// endedAt returns when the last container ended or, if the Pod does not say, the best known time.
func endedAt(pod *corev1.Pod) time.Time {
	var last time.Time
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses,
		pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if end := statuses[i].State.Terminated; end != nil && end.FinishedAt.After(last) {
				last = end.FinishedAt.Time
			}
		}
	}
	if !last.IsZero() {
		return last
	}
	if ready := podview.Condition(pod, corev1.PodReady); ready != nil && ready.Status == corev1.ConditionFalse &&
		!ready.LastTransitionTime.IsZero() {
		return ready.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// attempt is how often a Pod's index had failed before the Pod was created.
type attempt struct{ failures, ignored int }

func attemptOf(pod *corev1.Pod) attempt {
	return attempt{
		failures: number(pod, batchv1.JobIndexFailureCountAnnotation, 0),
		ignored:  number(pod, batchv1.JobIndexIgnoredFailureCountAnnotation, 0),
	}
}

func (a attempt) total() int { return a.failures + a.ignored }

// next returns the attempt after a failure.
func (a attempt) next(ignored bool) attempt {
	if ignored {
		a.ignored++
	} else {
		a.failures++
	}
	return a
}
