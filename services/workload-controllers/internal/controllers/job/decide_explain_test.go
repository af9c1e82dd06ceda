package job

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// said returns the summary and facts of an account.
func said(in Input, plan Plan) string {
	e := account(in, plan).Explanation()
	lines := []string{e.Summary}
	for _, fact := range e.Facts {
		lines = append(lines, fact.Reason+": "+fact.Message)
	}
	return strings.Join(lines, "\n")
}

func TestAccount(t *testing.T) {
	for name, row := range map[string]struct {
		in   Input
		want []string
	}{
		"at work": {inputOf(newJob(), "a Running"), []string{"waits for 1 Pod to end since "}},
		"with a deadline": {inputOf(newJob(deadline(600)), "a Running"), []string{
			"or spec.activeDeadlineSeconds (600) have passed"}},
		"Pods are missing": {inputOf(newJob(parallel(2, 2)), "a Running"), []string{"in its next pass creates 1 Pod",
			"waits for 1 Pod to end"}},
		"too many": {inputOf(newJob(), "a Running; b Running"), []string{"removes 1 Pod"}},
		"after a failure": {inputOf(newJob(status(func(s *batchv1.JobStatus) { s.Failed = 1 })), "a Failed untracked"),
			[]string{"waits for the time of the next Pods, after 1 failure; it ends when it is "}},
		"suspended": {inputOf(newJob(suspended, condition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended",
			"Job suspended")), ""), []string{"waits for the end of its suspension since ", "spec.suspend is false"}},
		"ending": {inputOf(newJob(condition(batchv1.JobFailureTarget, corev1.ConditionTrue, "BackoffLimitExceeded",
			"too often")), "a Running"), []string{"ends 1 Pod", "BackoffLimitExceeded: waits for ",
			"(FailureTarget: too often)"}},
		"finished": {inputOf(newJob(condition(batchv1.JobComplete, corev1.ConditionTrue, "", "done")), ""), []string{
			"waits for nothing: it is Complete since ", "done"}},
		"going": {inputOf(newJob(deleted), "a Running"), []string{"waits for its deletion to finish since "}},
	} {
		said := said(row.in, Decide(row.in))
		for _, want := range row.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
	}
}

func TestLeaves(t *testing.T) {
	other := newJob()
	other.Spec.ManagedBy = ptrTo("example.com/runner")
	if got := leaves(other); got != "leaves it alone: spec.managedBy gives it to example.com/runner" {
		t.Errorf("got %q", got)
	}
	strange := newJob()
	strange.Spec.CompletionMode = ptrTo(batchv1.CompletionMode("Odd"))
	if got := leaves(strange); !strings.Contains(got, "spec.completionMode") {
		t.Errorf("got %q", got)
	}
}
