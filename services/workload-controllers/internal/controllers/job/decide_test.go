package job

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/seconds"
)

// check decides each row, twice, and compares what it says.
func check(t *testing.T, rows []row) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			in := inputOf(c.job, c.pods)
			before := fmt.Sprintf("%+v", in)
			plan := Decide(in)
			if got := describe(in, plan); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !reflect.DeepEqual(plan, Decide(in)) {
				t.Error("two decisions over one input differ")
			}
			if fmt.Sprintf("%+v", in) != before {
				t.Error("the input changed")
			}
		})
	}
}

const (
	reached  = "SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods"
	complete = "Complete=True CompletionsReached: Reached expected number of succeeded pods; Normal event " +
		"Completed: Job completed"
	exceeded    = "FailureTarget=True BackoffLimitExceeded: Job has reached the specified backoff limit"
	pastTime    = "FailureTarget=True DeadlineExceeded: Job was active longer than specified deadline"
	resumedText = "Suspended=False JobResumed: Job resumed; Normal event Resumed: Job resumed"
)

func TestHowManyPods(t *testing.T) {
	succeeded := func(n int32) edit { return status(func(s *batchv1.JobStatus) { s.Succeeded = n }) }
	check(t, []row{
		{"JOB-001 JOB-027 the first", newJob(), "", "TooFew; create 1"},
		{"JOB-027 one is enough", newJob(), "a Running", "Steady"},
		{"JOB-005 JOB-029 as many at once as allowed", newJob(parallel(3, 5)), "a Running", "TooFew; create 2"},
		{"JOB-039 never more than are left to do", newJob(parallel(10, 5)), "", "TooFew; create 5"},
		{"JOB-039 after three successes", newJob(parallel(10, 5), succeeded(3)), "a Running", "TooFew; create 1"},
		{"JOB-039 uncounted successes count", newJob(parallel(10, 5), succeeded(2)), "a Succeeded; b Running",
			"TooFew; record a; untrack a; create 1"},
		{"JOB-038 none with parallelism 0", newJob(parallel(0, 5)), "a Running; b Pending",
			"TooMany; remove a b"},
		{"JOB-038 from 0 to 2", newJob(parallel(2, 5)), "", "TooFew; create 2"},
		{"JOB-038 fewer: those go first that serve least", newJob(parallel(1, 5)), "a Running ready; b Pending",
			"TooMany; remove b"},
		{"JOB-038 a surplus Pod loses the finalizer, so that it does not count", newJob(parallel(1, 5)),
			"a Running ready; b Running untracked deleting", "Steady"},
		{"JOB-032 a work queue", newJob(workQueue(3)), "a Running", "TooFew; create 2"},
		{"JOB-034 JOB-036 one has succeeded: none is added, none is ended", newJob(workQueue(3)),
			"a Succeeded; b Running", "Steady; record a; untrack a"},
		{"JOB-035 all have ended", newJob(workQueue(3), succeeded(1)), "b Failed",
			"Ending; record b; untrack b; " + reached},
		{"JOB-035 one is still ending", newJob(workQueue(3), succeeded(1)), "b Running untracked deleting",
			"Ending; " + reached},
		{"JOB-165 JOB-168 JOB-004 one that is being deleted is replaced", newJob(), "a Running deleting",
			"TooFew; record a; untrack a; create 1"},
		{"JOB-167 with policy Failed it is not", newJob(replacing(batchv1.Failed)), "a Running deleting", "Steady"},
		{"JOB-167 until it has ended", newJob(replacing(batchv1.Failed)), "a Failed deleting",
			"TooFew; record a; untrack a; create 1"},
		{"JOB-169 JOB-061 JOB-059 a failure policy implies policy Failed", newJob(policy()), "a Running deleting",
			"Steady"},
		{"JOB-059 it counts when it has ended", newJob(policy()), "a Failed deleting",
			"TooFew; record a; untrack a; create 1"},
		{"JOB-060 one that is being deleted has failed", newJob(backoffLimit(0)), "a Running deleting",
			"Ending; record a; untrack a; " + exceeded},
	})
}

func TestIndexedJobs(t *testing.T) {
	done := func(text string) edit {
		return status(func(s *batchv1.JobStatus) { s.CompletedIndexes = text })
	}
	check(t, []row{
		{"JOB-031 JOB-051 the lowest first", newJob(indexed(2, 5)), "", "TooFew; create 0/0/0; create 1/0/0"},
		{"JOB-051 gaps are filled", newJob(indexed(4, 5), done("1")), "a Running index=2",
			"TooFew; create 0/0/0; create 3/0/0; create 4/0/0"},
		{"JOB-045 a failed index is tried again", newJob(indexed(1, 3), done("0,2")), "a Failed index=1 ended=10",
			"TooFew; record a; untrack a; create 1/0/0"},
		{"JOB-045 successes of one index do not make up for another", newJob(indexed(3, 3), done("0,1")),
			"a Succeeded index=0", "TooFew; untrack a; create 2/0/0"},
		{"JOB-045 all of them", newJob(indexed(3, 3), done("0,1")), "a Succeeded index=2",
			"Ending; record a; untrack a; " + reached},
		{"JOB-051 of two Pods of one index one goes", newJob(indexed(2, 5)),
			"a Running index=0 ready; b Running index=0; c Running index=1", "TooMany; remove b"},
		{"JOB-051 the index has succeeded already", newJob(indexed(2, 5), done("0")),
			"a Running index=0; c Running index=1", "TooMany; remove a"},
		{"JOB-163 fewer completions: the higher indexes go", newJob(indexed(3, 3)),
			"a Running index=0; b Running index=1; c Running index=2; d Running index=3; e Running index=4",
			"TooMany; remove d e"},
		{"JOB-163 more completions", newJob(indexed(6, 6)),
			"a Running index=0; b Running index=1; c Running index=2",
			"TooFew; create 3/0/0; create 4/0/0; create 5/0/0"},
		{"JOB-164 failures beyond the range do not count", newJob(indexed(3, 3), backoffLimit(0)),
			"a Running index=0; b Running index=1; c Running index=2; d Failed index=3; e Succeeded index=4",
			"Steady; untrack d e"},
		{"a Pod without an index", newJob(indexed(1, 1)), "a Running; b Running index=0", "TooMany; remove a"},
		{"JOB-165 JOB-168 a Pod of the index is being deleted", newJob(indexed(1, 1)), "a Running index=0 deleting",
			"TooFew; record a; untrack a; create 0/0/0"},
		{"JOB-167 with policy Failed", newJob(indexed(2, 2), replacing(batchv1.Failed)), "a Running index=0 deleting",
			"TooFew; create 1/0/0"},
		{"JOB-167 not even one that no longer counts", newJob(indexed(1, 1), replacing(batchv1.Failed)),
			"a Running index=0 deleting untracked", "Steady"},
	})
}

func TestBackoffLimit(t *testing.T) {
	counted := func(n int32) edit { return status(func(s *batchv1.JobStatus) { s.Failed = n }) }
	restarting := newJob(onFailure, backoffLimit(4), parallel(2, 2))
	check(t, []row{
		{"JOB-066 the fourth of four", newJob(backoffLimit(4), counted(3)), "a Failed ended=10",
			"TooFew; record a; untrack a; create 1"},
		{"JOB-066 JOB-067 JOB-122 the fifth", newJob(backoffLimit(4), counted(4)), "a Failed",
			"Ending; record a; untrack a; " + exceeded},
		{"JOB-068 those that run are ended", newJob(backoffLimit(0), parallel(2, 2)),
			"a Failed; b Running", "Ending; record a; untrack a; end b; " + exceeded},
		{"JOB-066 what is not counted yet counts", newJob(backoffLimit(1), parallel(2, 2),
			status(func(s *batchv1.JobStatus) { s.UncountedTerminatedPods.Failed = []types.UID{"a"} })),
			"a Failed; b Failed", "Ending; record b; untrack a b; " + exceeded},
		{"JOB-064 the first failure waits", newJob(), "a Failed ended=3",
			"Waiting; record a; untrack a; wake in 7s"},
		{"JOB-064 it has waited", newJob(), "a Failed ended=10", "TooFew; record a; untrack a; create 1"},
		{"JOB-064 counted ones are remembered", newJob(counted(2)),
			"a Failed untracked ended=40; b Failed untracked ended=19",
			"Waiting; wake in 1s"},
		{"JOB-065 JOB-067 restarts below the limit", restarting, "a Running restarts=1; b Pending restarts=2",
			"Steady"},
		{"JOB-065 JOB-067 JOB-114 restarts at the limit", restarting, "a Running restarts=2; b Pending restarts=2",
			"Ending; end a b; " + exceeded},
		{"JOB-067 limit 0: no restart", newJob(onFailure, backoffLimit(0)), "a Running", "Steady"},
		{"JOB-067 limit 0: one restart", newJob(onFailure, backoffLimit(0)), "a Running restarts=1",
			"Ending; end a; " + exceeded},
		{"JOB-065 JOB-114 with Never restarts do not count", newJob(backoffLimit(1)), "a Running restarts=5", "Steady"},
	})
}

func TestBackoffLimitPerIndex(t *testing.T) {
	failed := func(text string) edit { return status(func(s *batchv1.JobStatus) { s.FailedIndexes = &text }) }
	done := func(text string) edit { return status(func(s *batchv1.JobStatus) { s.CompletedIndexes = text }) }
	maxFailed := func(n int32) edit { return func(job *batchv1.Job) { job.Spec.MaxFailedIndexes = &n } }
	ten := func(edits ...edit) *batchv1.Job {
		return newJob(append([]edit{indexed(3, 10), perIndex(1), maxFailed(5)}, edits...)...)
	}
	check(t, []row{
		{"JOB-081 the Pod stays until the next one knows of its failure", newJob(indexed(1, 2), perIndex(1)),
			"a Failed index=0 ended=10", "TooFew; create 0/1/0"},
		{"JOB-081 it waits by itself, others need not", newJob(indexed(1, 2), perIndex(1)),
			"a Failed index=0 ended=9", "TooFew; create 1/0/0; wake in 1s"},
		{"JOB-081 the second failure waits longer", newJob(indexed(1, 1), perIndex(5)),
			"a Failed index=0 failed=1 ended=19", "Waiting; wake in 1s"},
		{"JOB-081 ignored failures delay, too", newJob(indexed(1, 1), perIndex(5)),
			"a Failed index=0 failed=1 ignored=1 ended=39", "Waiting; wake in 1s"},
		{"JOB-081 the next one is there", newJob(indexed(1, 2), perIndex(1)),
			"a Failed index=0; b Running index=0 failed=1", "Steady; record a; untrack a"},
		{"JOB-070 the index is used up", ten(), "a Failed index=0 failed=1; b Running index=1",
			"TooFew; record a; untrack a; create 2/0/0; create 3/0/0"},
		{"JOB-070 JOB-071 no Pod for a failed index", ten(failed("0")), "b Running index=1; c Running index=2",
			"TooFew; create 3/0/0"},
		{"JOB-075 JOB-078 five failed indexes of five", ten(failed("0,2,4,6"), done("1")),
			"a Failed index=8 failed=1; b Running index=3; c Running index=5",
			"TooFew; record a; untrack a; create 7/0/0"},
		{"JOB-075 JOB-076 JOB-078 five of four", ten(failed("0,2,4,6"), maxFailed(4), done("1")),
			"a Failed index=8 failed=1; b Running index=3", "Ending; record a; untrack a; end b; FailureTarget=True " +
				"MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes"},
		{"JOB-072 JOB-077 JOB-079 all have ended, some have failed", ten(failed("0,2,4,6,8"), done("1,3,5,7")),
			"a Succeeded index=9",
			"Ending; record a; untrack a; FailureTarget=True FailedIndexes: Job has failed indexes"},
		{"JOB-072 all but one", ten(failed("0,2,4,6,8"), done("1,3,5,7")), "a Running index=9", "Steady"},
		{"JOB-094 JOB-080 the policy fails the index at once", ten(policy(onExit(failIndex, in, "", 7))),
			"a Failed index=0 exit=7; b Running index=1; c Running index=2",
			"TooFew; record a; untrack a; create 3/0/0"},
		{"JOB-092 the policy ignores the failure", ten(policy(onCondition(ignore, corev1.DisruptionTarget))),
			"a Failed index=0 disrupted failed=1 ended=20; b Running index=1; c Running index=2",
			"TooFew; create 0/1/1"},
		{"JOB-092 an ignored failure is not counted when the next one is there",
			ten(policy(onCondition(ignore, corev1.DisruptionTarget))),
			"a Failed index=0 disrupted; b Running index=1; c Running index=2; d Running index=0 ignored=1",
			"Steady; untrack a"},
		{"a failed Pod of an index that has succeeded", ten(done("0")),
			"a Failed index=0 failed=1; b Running index=1; c Running index=2",
			"TooFew; record a; untrack a; create 3/0/0"},
	})
}

func TestFailurePolicy(t *testing.T) {
	rules := policy(onExit(failJob, in, "main", 42), onCondition(ignore, corev1.DisruptionTarget))
	counted := func(n int32) edit { return status(func(s *batchv1.JobStatus) { s.Failed = n }) }
	check(t, []row{
		{"JOB-091 JOB-095 JOB-096 JOB-097 JOB-127 the Job fails at once", newJob(parallel(3, 12), rules),
			"a Failed exit=42; b Running; c Running", "Ending; record a; untrack a; end b c; " +
				"FailureTarget=True PodFailurePolicy: Container main for pod default/a failed with exit code 42 " +
				"matching FailJob rule at index 0"},
		{"JOB-092 JOB-099 an ignored failure is replaced and not counted", newJob(rules, counted(6)),
			"a Failed disrupted ended=10", "TooFew; untrack a; create 1"},
		{"JOB-098 another failure counts", newJob(rules, counted(6)), "a Failed exit=1",
			"Ending; record a; untrack a; " + exceeded},
		{"JOB-091 a Pod that was counted and not yet let go fails the Job, too", newJob(rules,
			status(func(s *batchv1.JobStatus) { s.UncountedTerminatedPods.Failed = []types.UID{"a"} })),
			"a Failed exit=42", "Ending; untrack a; FailureTarget=True PodFailurePolicy: Container main for pod " +
				"default/a failed with exit code 42 matching FailJob rule at index 0"},
	})
}

func TestSuccessPolicy(t *testing.T) {
	list, one := "0,2-3", int32(1)
	rules := func(job *batchv1.Job) {
		job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: &list,
			SucceededCount: &one}}}
	}
	const met = "SuccessCriteriaMet=True SuccessPolicy: Matched rules at index 0"
	target := condition(batchv1.JobFailureTarget, corev1.ConditionTrue, "BackoffLimitExceeded", "x")
	check(t, []row{
		{"JOB-109 not yet", newJob(indexed(10, 10), rules), "a Succeeded index=1; b Running index=2",
			"TooFew; record a; untrack a; create 0/0/0; create 3/0/0; create 4/0/0; create 5/0/0; create 6/0/0; " +
				"create 7/0/0; create 8/0/0; create 9/0/0"},
		{"JOB-108 JOB-109 the rest is ended and not counted", newJob(indexed(10, 10), rules),
			"a Succeeded index=2; b Running index=1; c Failed index=0",
			"Ending; record a c; untrack a c; remove b; " + met},
		{"JOB-108 JOB-123 and then the Job is complete", newJob(indexed(10, 10), rules,
			condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, "SuccessPolicy",
				"Matched rules at index 0")), "",
			"Ending; Complete=True SuccessPolicy: Matched rules at index 0; Normal event Completed: Job completed"},
		{"JOB-110 JOB-120 a failure that was told stays", newJob(indexed(10, 10), rules, target), "a Succeeded index=2",
			"Ending; record a; untrack a"},
		{"JOB-110 a success that was told stays", newJob(indexed(10, 10), rules, backoffLimit(0),
			condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, "SuccessPolicy", "x")), "a Failed index=0",
			"Ending; record a; untrack a"},
	})
}

func TestTheEnd(t *testing.T) {
	target := condition(batchv1.JobFailureTarget, corev1.ConditionTrue, "DeadlineExceeded", "why")
	success := condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, "CompletionsReached",
		"Reached expected number of succeeded pods")
	uncounted := func(uids ...types.UID) edit {
		return status(func(s *batchv1.JobStatus) { s.UncountedTerminatedPods.Failed = uids })
	}
	check(t, []row{
		{"JOB-001 JOB-029 JOB-044 JOB-129 enough have succeeded", newJob(), "a Succeeded",
			"Ending; record a; untrack a; " + reached},
		{"JOB-129 JOB-014 JOB-121 the Job is complete", newJob(success), "", "Ending; " + complete},
		{"JOB-124 JOB-125 JOB-127 JOB-128 not before the last Pod has ended", newJob(target),
			"a Running deleting untracked", "Ending"},
		{"JOB-124 not before the last Pod has lost its finalizer", newJob(target, uncounted("a")), "a Failed",
			"Ending; untrack a"},
		{"JOB-079 JOB-095 JOB-126 then, for the same reason", newJob(target, uncounted("a")), "",
			"Ending; Failed=True DeadlineExceeded: why; Warning event DeadlineExceeded: why"},
		{"JOB-126 a Pod that appears late is ended, too", newJob(target), "a Running", "Ending; end a"},
		{"JOB-126 one that was let go but not ended yet", newJob(target), "a Running untracked", "Ending; end a"},
		{"JOB-111 JOB-160 a finished Job lets go of its Pods and makes none", newJob(
			condition(batchv1.JobFailed, corev1.ConditionTrue, "x", "x")), "a Failed; b Failed untracked; c Running",
			"Finished; untrack a c"},
		{"JOB-111 JOB-120 a complete Job", newJob(parallel(2, 2),
			condition(batchv1.JobComplete, corev1.ConditionTrue, "x", "x")), "", "Finished"},
		{"a condition that is not true ends nothing", newJob(
			condition(batchv1.JobFailed, corev1.ConditionFalse, "x", "x")), "", "TooFew; create 1"},
		{"no Pod is wanted: complete at once", newJob(parallel(1, 0)), "", "Ending; " + reached + "; " + complete},
		{"JOB-160 the Job is being deleted: what ends is counted and let go", newJob(deleted),
			"a Running; b Succeeded; c Running deleting", "Deleting; record b c; untrack b c"},
		{"JOB-160 it makes no Pod", newJob(deleted), "", "Deleting"},
	})
}

func TestDeadline(t *testing.T) {
	check(t, []row{
		{"JOB-115 the longest deadline", newJob(deadline(math.MaxInt64)), "a Running",
			"Steady; wake in " + (seconds.Most*time.Second - time.Minute).String()},
		{"JOB-115 not yet", newJob(deadline(61)), "a Running", "Steady; wake in 1s"},
		{"JOB-115 JOB-116 JOB-118 the Job was active too long", newJob(deadline(60)), "a Running",
			"Ending; end a; " + pastTime},
		{"JOB-117 no Pod is tried any more", newJob(deadline(60)), "a Failed ended=30",
			"Ending; record a; untrack a; " + pastTime},
		{"JOB-117 the deadline comes before the next try", newJob(deadline(62)), "a Failed",
			"Waiting; record a; untrack a; wake in 2s"},
		{"JOB-140 a suspended Job has none", newJob(deadline(60), suspended,
			condition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "")), "", "Suspended"},
		{"JOB-140 it starts anew", newJob(deadline(60),
			condition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "")), "",
			"TooFew; create 1; " + resumedText + "; wake in 1m0s"},
	})
}

func TestSuspend(t *testing.T) {
	is := condition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended")
	const text = "Suspended=True JobSuspended: Job suspended; Normal event Suspended: Job suspended"
	fresh := status(func(s *batchv1.JobStatus) { s.StartTime = nil })
	check(t, []row{
		{"JOB-139 created suspended", newJob(suspended, fresh), "", "Suspended; " + text},
		{"JOB-139 it stays so", newJob(suspended, fresh, is), "", "Suspended"},
		{"JOB-003 JOB-141 JOB-142 JOB-143 its Pods end, and nobody counts them", newJob(suspended, parallel(2, 4)),
			"a Running; b Pending", "Suspended; remove a b; " + text},
		{"JOB-142 what has ended before counts", newJob(suspended, is, parallel(2, 4)), "a Succeeded; b Failed",
			"Suspended; record a b; untrack a b"},
		{"JOB-143 what ends by it does not", newJob(suspended, is, parallel(2, 4), backoffLimit(0)),
			"a Running untracked deleting; b Failed untracked deleting", "Suspended"},
		{"JOB-139 JOB-149 JOB-146 resumed", newJob(is, parallel(2, 4)), "", "TooFew; create 2; " + resumedText},
		{"JOB-144 never suspended: no condition", newJob(fresh), "", "TooFew; create 1"},
		{"all was done before it was suspended", newJob(suspended), "a Succeeded", "Ending; record a; untrack a; " +
			reached},
	})
	resumed := Decide(inputOf(newJob(is), ""))
	if got := resumed.Status.StartTime; got == nil || !got.Time.Equal(start) {
		t.Errorf("JOB-140 resumed, the Job runs since %v, want %v", got, start)
	}
	for what, job := range map[string]*batchv1.Job{"created suspended": newJob(suspended, fresh),
		"suspended after it ran": newJob(suspended), "suspended for long": newJob(suspended, is)} {
		if got := Decide(inputOf(job, "")).Status.StartTime; got != nil {
			t.Errorf("JOB-145 %s, the Job runs since %v", what, got)
		}
	}
	if got := Decide(inputOf(newJob(fresh), "")).Status.StartTime; got == nil || !got.Time.Equal(start) {
		t.Errorf("JOB-010 a new Job runs since %v, want %v", got, start)
	}
	if got := Decide(inputOf(newJob(), "a Running")).Status.StartTime; !got.Time.Equal(start.Add(-time.Minute)) {
		t.Errorf("a Job that goes on runs since %v", got)
	}
	c := resumed.Status.Conditions[0]
	if !c.LastTransitionTime.Time.Equal(start) || !c.LastProbeTime.Time.Equal(start) {
		t.Errorf("JOB-144 resumed at %v, looked at %v", c.LastTransitionTime, c.LastProbeTime)
	}
}

func TestClaims(t *testing.T) {
	check(t, []row{
		{"a Pod whose labels do not match is released", newJob(), "a Running relabelled; b Running",
			"Owners; release a"},
		{"one that has ended, too", newJob(), "a Succeeded relabelled", "Owners; release a"},
		{"JOB-158 a Pod of its own without the finalizer gets it", newJob(), "a Running untracked", "Owners; adopt a"},
		{"but not when it is being deleted", newJob(), "a Running untracked deleting", "TooFew; create 1"},
		{"a Job that is being deleted changes nothing", newJob(deleted), "a Running relabelled; b Running untracked",
			"Deleting"},
	})
	in := inputOf(newJob(), "")
	in.Orphans = []*corev1.Pod{newPod("b Running"), newPod("a Running")}
	if got := describe(in, Decide(in)); got != "Owners; adopt a b" { // JOB-157
		t.Errorf("Pods without a controller: %s", got)
	}
	in.Job = newJob(deleted)
	if got := describe(in, Decide(in)); got != "Deleting" {
		t.Errorf("a Job that is being deleted and Pods without a controller: %s", got)
	}
}
