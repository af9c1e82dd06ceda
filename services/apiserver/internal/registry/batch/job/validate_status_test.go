package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

// at is a moment that many seconds after the Job's start.
func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: time.Date(2026, 1, 10, 12, 0, seconds, 0, time.UTC)}
}

// conditions are true, except those with a "!" before their type.
func conditions(types ...string) []batchv1.JobCondition {
	var list []batchv1.JobCondition
	for _, kind := range types {
		status := corev1.ConditionTrue
		if kind[0] == '!' {
			kind, status = kind[1:], corev1.ConditionFalse
		}
		list = append(list, batchv1.JobCondition{Type: batchv1.JobConditionType(kind), Status: status})
	}
	return list
}

// The status of a Job is what controllers and users go by, whoever manages it. JOB-121, JOB-124, JOB-129, JOB-053.
func TestValidateStatusUpdate(t *testing.T) {
	type status = batchv1.JobStatus
	complete := status{StartTime: at(0), CompletionTime: at(9), Succeeded: 1,
		Conditions: conditions("SuccessCriteriaMet", "Complete")}
	failed := status{StartTime: at(0), Failed: 5, Conditions: conditions("FailureTarget", "Failed")}
	with := func(s status, edit func(*status)) status {
		s = *s.DeepCopy()
		edit(&s)
		return s
	}
	limited := all(indexed(10), perIndex(1, 10))
	elastic, steady := indexed(10), all(indexed(10), func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](3) })
	suspended := func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }
	idle := all(suspended, func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](0) })
	uids := func(succeeded, failed []types.UID) *batchv1.UncountedTerminatedPods {
		return &batchv1.UncountedTerminatedPods{Succeeded: succeeded, Failed: failed}
	}
	plain := all()
	for _, row := range []struct {
		name string
		job  edit
		old  status
		now  status
		want []string
	}{
		{"a start", plain, status{}, status{StartTime: at(0), Active: 1, Ready: ptr.To[int32](1),
			UncountedTerminatedPods: uids(nil, nil)}, nil},
		{"JOB-129 complete", plain, status{StartTime: at(0), Active: 1}, complete, nil},
		{"failed", plain, status{StartTime: at(0), Active: 1}, failed, nil},
		{"negative counts", plain, status{}, status{Active: -1, Succeeded: -1, Failed: -1, Ready: ptr.To[int32](-2),
			Terminating: ptr.To[int32](-1)}, []string{
			"status.active: Invalid value: -1: must be greater than or equal to 0",
			"status.succeeded: Invalid value: -1: must",
			"status.failed: Invalid value: -1: must", "status.ready: Invalid value: -2: must",
			"status.terminating: Invalid value: -1: must", "status.failed: Invalid value: -1: cannot",
			"status.succeeded: Invalid value: -1: cannot"}},
		{"more ready than active", plain, status{}, status{Active: 1, Ready: ptr.To[int32](2)},
			[]string{"status.ready: Invalid value: 2: cannot set more ready pods than active"}},
		{"fewer failures", plain, status{Failed: 2}, status{Failed: 1},
			[]string{"status.failed: Invalid value: 1: cannot decrease the failed counter"}},
		{"fewer successes", steady, status{Succeeded: 2}, status{Succeeded: 1},
			[]string{"status.succeeded: Invalid value: 1: cannot decrease the succeeded counter"}},
		{"JOB-163 fewer successes of an elastic Job", elastic, status{Succeeded: 2}, status{Succeeded: 1}, nil},

		{"JOB-121 Complete and Failed", plain, status{}, with(complete, func(s *status) {
			s.Conditions = conditions("Complete", "SuccessCriteriaMet", "Failed", "FailureTarget")
		}), []string{
			"status.conditions: Invalid value: cannot set Complete=True and Failed=True conditions",
			"status.conditions: Invalid value: cannot set Complete=True and FailureTarget=True conditions",
			"status.conditions: Invalid value: cannot set Failed=True and SuccessCriteriaMet=True conditions",
			"status.conditions: Invalid value: cannot set FailureTarget=True and SuccessCriteriaMet=True conditions"}},
		{"JOB-110 both outcomes announced", plain, status{},
			status{Conditions: conditions("FailureTarget", "SuccessCriteriaMet")},
			[]string{"status.conditions: Invalid value: cannot set FailureTarget=True and SuccessCriteriaMet=True"}},
		{"an outcome that is not true", plain, status{StartTime: at(0)},
			status{StartTime: at(0), Conditions: conditions("!Complete", "!Failed", "!FailureTarget")}, nil},
		{"JOB-126 Failed without notice", plain, status{},
			with(failed, func(s *status) { s.Conditions = conditions("Failed") }),
			[]string{
				"status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=True"}},
		{"JOB-126 Complete without notice", plain, status{},
			with(complete, func(s *status) { s.Conditions = conditions("Complete") }),
			[]string{
				"status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet"}},
		{"JOB-121 not Failed any more", plain, failed, with(failed, func(s *status) { s.Conditions = nil }), []string{
			"status.conditions: Invalid value: cannot disable the Failed=True condition",
			"status.conditions: Invalid value: cannot disable the FailureTarget=True condition"}},
		{"JOB-121 not Complete any more", plain, complete,
			with(complete, func(s *status) { s.Conditions, s.CompletionTime = conditions("!Complete"), nil }), []string{
				"status.conditions: Invalid value: cannot disable the Complete=True condition",
				"status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
				"status.completionTime: Invalid value: null: completionTime cannot be mutated"}},

		{"JOB-124 Complete while a Pod runs", plain, status{}, with(complete, func(s *status) { s.Active = 1 }),
			[]string{"status.active: Invalid value: 1: active>0 is invalid for finished job"}},
		{"JOB-124 Failed while a Pod ends", plain, status{},
			with(failed, func(s *status) { s.Terminating = ptr.To[int32](1) }),
			[]string{"status.terminating: Invalid value: 1: terminating>0 is invalid for finished job"}},
		{"JOB-159 finished before all is counted", plain, status{},
			with(failed, func(s *status) { s.UncountedTerminatedPods = uids(nil, []types.UID{"a"}) }),
			[]string{"status.uncountedTerminatedPods: Invalid value"}},
		{"finished without a start", plain, status{}, with(failed, func(s *status) { s.StartTime = nil }),
			[]string{"status.startTime: Required value: startTime is required for finished job"}},
		{"nothing to do and never started", idle, status{}, with(complete, func(s *status) { s.StartTime = nil }), nil},

		{"JOB-129 a completion time without completion", plain, status{}, status{CompletionTime: at(1)},
			[]string{"status.completionTime: Invalid value: \"2026-01-10T12:00:01Z\": cannot set completionTime when"}},
		{"JOB-129 completion without its time", plain, status{},
			with(complete, func(s *status) { s.CompletionTime = nil }),
			[]string{"status.completionTime: Required value: completionTime is required for Complete jobs"}},
		{"another completion time", plain, complete, with(complete, func(s *status) { s.CompletionTime = at(8) }),
			[]string{
				"status.completionTime: Invalid value: \"2026-01-10T12:00:08Z\": completionTime cannot be mutated"}},
		{"completed before the start", plain, status{}, with(complete, func(s *status) { s.StartTime = at(10) }),
			[]string{
				"status.completionTime: Invalid value: \"2026-01-10T12:00:09Z\": completionTime cannot be set before"}},
		{"completed at the start", plain, status{}, with(complete, func(s *status) { s.StartTime = at(9) }), nil},

		{"another start", plain, status{StartTime: at(0)}, status{StartTime: at(1)},
			[]string{"status.startTime: Invalid value: \"2026-01-10T12:00:01Z\": startTime cannot be updated for " +
				"unsuspended"}},
		{"the start forgotten", plain, status{StartTime: at(0)}, status{},
			[]string{"status.startTime: Required value: startTime cannot be removed for unsuspended job"}},
		{"JOB-145 the start forgotten while suspended", suspended, status{StartTime: at(0)}, status{}, nil},
		{"JOB-140 resumed", plain, status{StartTime: at(0), Conditions: conditions("Suspended")},
			status{StartTime: at(1), Conditions: conditions("!Suspended")}, nil},
		{"another start of a finished Job", suspended, failed, with(failed, func(s *status) { s.StartTime = at(1) }),
			[]string{"status.startTime: Invalid value: \"2026-01-10T12:00:01Z\": startTime cannot be updated for " +
				"finished job"}},

		{"JOB-159 a Pod listed twice", plain, status{}, status{UncountedTerminatedPods: uids([]types.UID{"a", "a"},
			[]types.UID{"b", "a", ""})}, []string{
			`status.uncountedTerminatedPods.succeeded[1]: Duplicate value: "a"`,
			`status.uncountedTerminatedPods.failed[1]: Duplicate value: "a"`,
			`status.uncountedTerminatedPods.failed[2]: Invalid value: "": must not be empty`}},

		{"JOB-053 indexes", limited, status{}, status{CompletedIndexes: "1,3-5,7", FailedIndexes: ptr.To("0,2,9")},
			nil},
		{"JOB-053 indexes in disorder", limited, status{}, status{CompletedIndexes: "3,1",
			FailedIndexes: ptr.To("5,4")},
			[]string{
				`status.completedIndexes: Invalid value: "3,1": error parsing completedIndexes: non-increasing order`,
				`status.failedIndexes: Invalid value: "5,4": error parsing failedIndexes: non-increasing order`}},
		{"an index too large", limited, status{}, status{CompletedIndexes: "10"},
			[]string{
				`status.completedIndexes: Invalid value: "10": error parsing completedIndexes: too large index: "10"`}},
		{"JOB-164 an index that became too large", limited, status{CompletedIndexes: "10"},
			status{CompletedIndexes: "10", Active: 1}, nil},
		{"both", limited, status{}, status{CompletedIndexes: "1-3,7", FailedIndexes: ptr.To("0,3")},
			[]string{`status.failedIndexes: Invalid value: "0,3": failedIndexes and completedIndexes overlap`}},
		{"JOB-052 completed indexes of a Job without", plain, status{}, status{CompletedIndexes: "0"},
			[]string{`status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes`}},
		{"JOB-070 failed indexes without a limit", elastic, status{}, status{FailedIndexes: ptr.To("")},
			[]string{`status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			old := pi(row.job)
			old.Status = row.old
			updated := old.DeepCopy()
			updated.Status = row.now
			fieldtest.Check(t, ValidateStatusUpdate(updated, old), row.want...)
		})
	}
}

func TestOverlaps(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want bool
	}{
		{"", "", false}, {"1", "", false}, {"1", "1", true}, {"1-3", "4-6", false}, {"1-4", "4-6", true},
		{"4-6", "1-4", true}, {"0,5", "1-4,6", false}, {"0,5,9", "1-4,9", true}, {"0-9", "5", true},
	} {
		a, errA := parseIndexes(row.a, 10)
		b, errB := parseIndexes(row.b, 10)
		if errA != nil || errB != nil || a.overlaps(b) != row.want || b.overlaps(a) != row.want {
			t.Errorf("%q and %q overlap: %v, %v, %v", row.a, row.b, a.overlaps(b), errA, errB)
		}
	}
}
