package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

func onExit(action batchv1.PodFailurePolicyAction, operator batchv1.PodFailurePolicyOnExitCodesOperator,
	container string, values ...int32) batchv1.PodFailurePolicyRule {
	rule := batchv1.PodFailurePolicyRule{Action: action,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: operator, Values: values}}
	if container != "" {
		rule.OnExitCodes.ContainerName = &container
	}
	return rule
}

func onCondition(action batchv1.PodFailurePolicyAction, kinds ...corev1.PodConditionType) batchv1.PodFailurePolicyRule {
	rule := batchv1.PodFailurePolicyRule{Action: action}
	for _, kind := range kinds {
		rule.OnPodConditions = append(rule.OnPodConditions, batchv1.PodFailurePolicyOnPodConditionsPattern{Type: kind,
			Status: corev1.ConditionTrue})
	}
	return rule
}

const (
	failJob   = batchv1.PodFailurePolicyActionFailJob
	failIndex = batchv1.PodFailurePolicyActionFailIndex
	ignore    = batchv1.PodFailurePolicyActionIgnore
	count     = batchv1.PodFailurePolicyActionCount
	in        = batchv1.PodFailurePolicyOnExitCodesOpIn
	notIn     = batchv1.PodFailurePolicyOnExitCodesOpNotIn
)

func TestHandling(t *testing.T) {
	on42 := onExit(failJob, in, "main", 42)
	onDisruption := onCondition(ignore, corev1.DisruptionTarget)
	for _, c := range []struct {
		name, pod string
		job       *batchv1.Job
		want      batchv1.PodFailurePolicyAction
		message   string
	}{
		{"JOB-057 without a policy", "a Failed exit=42", newJob(), count, ""},
		{"JOB-084 without a rule that matches", "a Failed exit=1", newJob(policy(on42, onDisruption)), count, ""},
		{"JOB-096 JOB-097 JOB-098 the exit code", "a Failed exit=42", newJob(policy(on42, onDisruption)), failJob,
			"Container main for pod default/a failed with exit code 42 matching FailJob rule at index 0"},
		{"JOB-088 JOB-092 a condition", "a Failed exit=1 disrupted", newJob(policy(on42, onDisruption)), ignore, ""},
		{"JOB-099 both: the first rule", "a Failed exit=42 disrupted", newJob(policy(on42, onDisruption)), failJob,
			"Container main for pod default/a failed with exit code 42 matching FailJob rule at index 0"},
		{"JOB-084 both, in the other order", "a Failed exit=42 disrupted", newJob(policy(onDisruption, on42)), ignore,
			""},
		{"JOB-096 the second rule, by a condition", "a Failed disrupted",
			newJob(policy(on42, onCondition(failJob, corev1.DisruptionTarget))), failJob,
			"Pod default/a has condition DisruptionTarget matching FailJob rule at index 1"},
		{"JOB-085 of another container", "a Failed exit=42", newJob(policy(onExit(failJob, in, "other", 42))), count,
			""},
		{"JOB-085 of any container", "a Failed exit=42", newJob(policy(onExit(ignore, in, "", 7, 42))), ignore, ""},
		{"JOB-086 in: listed", "a Failed exit=7", newJob(policy(onExit(ignore, in, "", 7, 42))), ignore, ""},
		{"JOB-086 in: not listed", "a Failed exit=8", newJob(policy(onExit(ignore, in, "", 7, 42))), count, ""},
		{"JOB-086 not in: listed", "a Failed exit=7", newJob(policy(onExit(ignore, notIn, "", 7, 42))), count, ""},
		{"JOB-086 not in: not listed", "a Failed exit=8", newJob(policy(onExit(ignore, notIn, "", 7, 42))), ignore, ""},
		{"JOB-087 success is never not in", "a Failed exit=0", newJob(policy(onExit(ignore, notIn, "", 7))), count, ""},
		{"an unknown operator", "a Failed exit=7", newJob(policy(onExit(ignore, "Near", "", 7))), count, ""},
		{"JOB-093 count", "a Failed exit=7 disrupted", newJob(policy(onExit(count, in, "", 7), onDisruption)), count,
			""},
		{"JOB-094 fail the index", "a Failed exit=7", newJob(indexed(1, 2), perIndex(3),
			policy(onExit(failIndex, in, "", 7))), failIndex, ""},
		{"JOB-090 without limits by index there is none to fail", "a Failed exit=7",
			newJob(policy(onExit(failIndex, in, "", 7), onExit(ignore, in, "", 7))), ignore, ""},
		{"an unknown action is passed over", "a Failed exit=7",
			newJob(policy(onExit("Retry", in, "", 7), onExit(ignore, in, "", 7))), ignore, ""},
		{"JOB-089 one of several patterns", "a Failed disrupted",
			newJob(policy(onCondition(ignore, "Other", corev1.DisruptionTarget))), ignore, ""},
		{"JOB-088 none of the patterns", "a Failed ready",
			newJob(policy(onCondition(ignore, "Other", corev1.DisruptionTarget))), count, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := handlingOf(c.job, newPod(c.pod)); got.action != c.want || got.message != c.message {
				t.Errorf("%+v, want %s %q", got, c.want, c.message)
			}
		})
	}
}

// A pattern is met by its status alone; init containers count as containers do.
func TestHandlingOfTheRest(t *testing.T) {
	pod := newPod("a Failed disrupted")
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	if got := handlingOf(newJob(policy(onCondition(ignore, corev1.DisruptionTarget))), pod); got.action != count {
		t.Errorf("JOB-088 a false condition is handled as %+v", got)
	}
	pod.Status.ContainerStatuses = nil
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init"}, {Name: "init2",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}}}
	got := handlingOf(newJob(policy(onExit(failJob, in, "init2", 3))), pod)
	want := "Container init2 for pod default/a failed with exit code 3 matching FailJob rule at index 0"
	if got.message != want {
		t.Errorf("JOB-085 of an init container %+v, want %s", got, want)
	}
}
