package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// handling is the consequence of a failed Pod for its Job.
type handling struct {
	action batchv1.PodFailurePolicyAction
	// message is the reason if the action is FailJob.
	message string
}

// handlingOf applies the Job's failure policy to a failed Pod: the first matching rule decides. Without one the
// failure counts.
func handlingOf(job *batchv1.Job, pod *corev1.Pod) handling {
	count := handling{action: batchv1.PodFailurePolicyActionCount}
	if job.Spec.PodFailurePolicy == nil {
		return count
	}
	for i := range job.Spec.PodFailurePolicy.Rules {
		rule := &job.Spec.PodFailurePolicy.Rules[i]
		what, matches := match(rule, pod)
		if !matches {
			continue
		}
		switch rule.Action {
		case batchv1.PodFailurePolicyActionFailJob:
			return handling{rule.Action, fmt.Sprintf("%s matching %s rule at index %d", what, rule.Action, i)}
		case batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount:
			return handling{action: rule.Action}
		case batchv1.PodFailurePolicyActionFailIndex:
			if job.Spec.BackoffLimitPerIndex != nil {
				return handling{action: rule.Action}
			}
		}
	}
	return count
}

// match reports whether a rule applies to the Pod, and by what.
func match(rule *batchv1.PodFailurePolicyRule, pod *corev1.Pod) (what string, matches bool) {
	if rule.OnExitCodes != nil {
		for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
			if matchesExit(rule.OnExitCodes, &status) {
				return fmt.Sprintf("Container %s for pod %s/%s failed with exit code %d", status.Name, pod.Namespace,
					pod.Name, status.State.Terminated.ExitCode), true
			}
		}
		return "", false
	}
	for _, pattern := range rule.OnPodConditions {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == pattern.Type && condition.Status == pattern.Status {
				return fmt.Sprintf("Pod %s/%s has condition %s", pod.Namespace, pod.Name, condition.Type), true
			}
		}
	}
	return "", false
}

// matchesExit reports whether a container has ended as the requirement says. A container that succeeded never
// matches.
func matchesExit(
	required *batchv1.PodFailurePolicyOnExitCodesRequirement, status *corev1.ContainerStatus,
) bool {
	end := status.State.Terminated
	if end == nil || end.ExitCode == 0 || required.ContainerName != nil && *required.ContainerName != status.Name {
		return false
	}
	listed := slices.Contains(required.Values, end.ExitCode)
	switch required.Operator {
	case batchv1.PodFailurePolicyOnExitCodesOpIn:
		return listed
	case batchv1.PodFailurePolicyOnExitCodesOpNotIn:
		return !listed
	default:
		return false
	}
}
