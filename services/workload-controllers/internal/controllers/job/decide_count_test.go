package job

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// JOB-159: told in the status, let go, counted: each step waits for the one before.
func TestCounting(t *testing.T) {
	counters := func(s batchv1.JobStatus) string {
		return fmt.Sprintf("succeeded %d %v failed %d %v completed %s", s.Succeeded,
			s.UncountedTerminatedPods.Succeeded,
			s.Failed, s.UncountedTerminatedPods.Failed, s.CompletedIndexes)
	}
	told := status(func(s *batchv1.JobStatus) {
		s.Succeeded, s.Failed = 3, 1
		s.UncountedTerminatedPods.Succeeded = []types.UID{"a"}
		s.UncountedTerminatedPods.Failed = []types.UID{"b", "c"}
	})
	for _, c := range []struct {
		name     string
		job      *batchv1.Job
		pods     string
		absent   []types.UID
		want     string
		vanished int
	}{
		{"two have ended", newJob(parallel(9, 9)), "a Succeeded; b Failed; d Running", nil,
			"succeeded 0 [a] failed 0 [b] completed ", 0},
		{"they still have the finalizer", newJob(parallel(9, 9), told), "a Succeeded; b Failed; c Failed", nil,
			"succeeded 3 [a] failed 1 [b c] completed ", 0},
		{"one has lost it", newJob(parallel(9, 9), told), "a Succeeded; b Failed; c Failed untracked", nil,
			"succeeded 3 [a] failed 2 [b] completed ", 0},
		{"two are gone", newJob(parallel(9, 9), told), "b Failed", []types.UID{"a", "c"},
			"succeeded 4 [] failed 2 [b] completed ", 2},
		{"JOB-060 told as failed, it ends well", newJob(parallel(9, 9), told), "b Succeeded deleting", nil,
			"succeeded 4 [] failed 2 [b] completed ", 0},
		{"JOB-052 JOB-045 an index counts by itself", newJob(indexed(9, 9), status(func(s *batchv1.JobStatus) {
			s.CompletedIndexes, s.Succeeded = "1", 1
		})), "a Succeeded index=2; b Succeeded index=1; c Succeeded index=2", nil,
			"succeeded 2 [] failed 0 [] completed 1,2", 0},
		{"JOB-164 fewer completions, fewer successes", newJob(indexed(2, 2), status(func(s *batchv1.JobStatus) {
			s.CompletedIndexes, s.Succeeded = "1,3", 2
		})), "", nil, "succeeded 1 [] failed 0 [] completed 1", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := inputOf(c.job, c.pods)
			in.Absent = c.absent
			plan := Decide(in)
			if got := counters(plan.Status); got != c.want || len(plan.Vanished) != c.vanished {
				t.Errorf("%s, vanished %v; want %s, %d", got, plan.Vanished, c.want, c.vanished)
			}
		})
	}
}

// JOB-159: one status takes up to 500 Pods, the others wait for the next.
func TestUncountedPodsAreBounded(t *testing.T) {
	var pods []string
	for i := range 600 {
		pods = append(pods, fmt.Sprintf("p%d %s", i, []string{"Succeeded", "Failed ended=999"}[i%2]))
	}
	plan := Decide(inputOf(newJob(parallel(700, 700), backoffLimit(400)), strings.Join(pods, ";")))
	uncounted := plan.Status.UncountedTerminatedPods
	if n := len(uncounted.Succeeded) + len(uncounted.Failed); n != 500 || len(plan.Untrack) != 500 {
		t.Errorf("%d are told, %d let go", n, len(plan.Untrack))
	}
	if len(plan.Create) != 400 { // 700 less 300 that have succeeded, told or not
		t.Errorf("%d are made", len(plan.Create))
	}
	if plan = Decide(inputOf(newJob(parallel(700, 700)), "")); len(plan.Create) != 500 {
		t.Errorf("%d are made in one pass", len(plan.Create))
	}
}

// JOB-010, JOB-170: the figures of a status.
func TestFigures(t *testing.T) {
	plan := Decide(inputOf(newJob(parallel(5, 9), replacing(batchv1.Failed)),
		"a Running ready; b Running; c Pending; d Running deleting; e Running deleting; f Running deleting untracked "+
			"ready"))
	if s := plan.Status; s.Active != 3 || *s.Ready != 1 || *s.Terminating != 3 {
		t.Errorf("active %d, ready %d, terminating %d; want 3, 1, 3", s.Active, *s.Ready, *s.Terminating)
	}
	fresh := newJob(status(func(s *batchv1.JobStatus) { *s = batchv1.JobStatus{} }))
	s := Decide(inputOf(fresh, "")).Status
	if s.Ready == nil || *s.Ready != 0 || s.Terminating == nil || *s.Terminating != 0 ||
		s.UncountedTerminatedPods == nil {
		t.Errorf("a new Job's status %+v lacks a figure", s)
	}
	plan = Decide(inputOf(newJob(condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, "x", "x")), ""))
	if at := plan.Status.CompletionTime; at == nil || !at.Time.Equal(start) { // JOB-013, JOB-129
		t.Errorf("a Job that is complete ended at %v", at)
	}
	plan = Decide(inputOf(newJob(condition(batchv1.JobFailureTarget, corev1.ConditionTrue, "x", "x")), ""))
	if at := plan.Status.CompletionTime; at != nil { // JOB-129
		t.Errorf("a Job that has failed was completed at %v", at)
	}
}

// A status that tells nothing new but numbers waits for more of them; what it has not told yet is not let go.
func TestStatusesAreFew(t *testing.T) {
	pods := make([]string, 50)
	for i := range pods {
		pods[i] = fmt.Sprintf("p%d Running", i)
	}
	pods[0] = "p0 Succeeded"
	for _, c := range []struct {
		name  string
		edit  edit
		ago   time.Duration
		write bool
		wake  time.Duration
	}{
		{"written just now", parallel(50, 90), 0, false, 500 * time.Millisecond},
		{"not long enough ago", parallel(50, 90), 499 * time.Millisecond, false, time.Millisecond},
		{"long enough ago", parallel(50, 90), 500 * time.Millisecond, true, 0},
		{"a condition is new", deadline(60), 0, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := inputOf(newJob(parallel(50, 90), c.edit), strings.Join(pods, ";"))
			in.Written = start.Add(-c.ago)
			plan := Decide(in)
			if plan.WriteStatus != c.write || (len(plan.Untrack) > 0) != c.write ||
				(len(plan.Recorded) > 0) != c.write {
				t.Errorf("written: %t, let go: %d", plan.WriteStatus, len(plan.Untrack))
			}
			if c.wake > 0 && !plan.Wake.Equal(start.Add(c.wake)) {
				t.Errorf("again in %v, want %v", plan.Wake.Sub(start), c.wake)
			}
		})
	}
	job := newJob()
	job.Status = Decide(inputOf(job, "a Running")).Status
	if plan := Decide(inputOf(job, "a Running")); plan.WriteStatus {
		t.Error("a status that is right is written again")
	}
}

func TestAgrees(t *testing.T) {
	for _, c := range []struct {
		name    string
		plan    Plan
		tracked map[types.UID]bool
		want    bool
	}{
		{"JOB-159 told, and has the finalizer", Plan{Recorded: []*corev1.Pod{newPod("a Failed")}},
			map[types.UID]bool{"a": true}, true},
		{"JOB-159 told, but has lost the finalizer", Plan{Recorded: []*corev1.Pod{newPod("a Failed")}},
			map[types.UID]bool{"a": false}, false},
		{"JOB-159 told, but is gone", Plan{Recorded: []*corev1.Pod{newPod("a Failed")}}, nil, false},
		{"JOB-159 counted, and is gone", Plan{Vanished: []types.UID{"a"}}, nil, true},
		{"JOB-159 counted, and has lost the finalizer", Plan{Vanished: []types.UID{"a"}},
			map[types.UID]bool{"a": false}, true},
		{"JOB-159 counted, but has the finalizer", Plan{Vanished: []types.UID{"a"}}, map[types.UID]bool{"a": true},
			false},
	} {
		if got := c.plan.agrees(c.tracked); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestStampHasWholeSeconds(t *testing.T) {
	if got := stamp(start.Add(time.Millisecond)); !got.Equal(ptrTo(metav1.NewTime(start))) {
		t.Errorf("%v, want %v", got, start)
	}
}
