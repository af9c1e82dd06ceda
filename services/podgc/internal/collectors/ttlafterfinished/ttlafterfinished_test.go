package ttlafterfinished

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// end is when the Jobs of the tests end.
var end = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// ended is a Job that has ended in a condition, with a time to live.
func ended(condition batchv1.JobConditionType, ttl *int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pi", UID: "uid"},
		Spec:       batchv1.JobSpec{TTLSecondsAfterFinished: ttl},
		Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
			{Type: "Suspended", Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.Time{Time: end.Add(-time.Hour)}},
			{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: end}},
		}},
	}
}

func TestDecide(t *testing.T) {
	n := ptr.To[int32]
	undone, timeless, going := ended("Complete", n(0)), ended("Complete", n(0)), ended("Complete", n(0))
	undone.Status.Conditions[1].Status = corev1.ConditionFalse
	timeless.Status.Conditions[1].LastTransitionTime = metav1.Time{}
	going.DeletionTimestamp = &metav1.Time{Time: end}
	for _, row := range []struct {
		name string
		job  *batchv1.Job
		at   time.Duration // after its end
		want bool
		wake time.Duration // after its end; 0: never
	}{
		{"JOB-132, JOB-177 just before its time", ended("Complete", n(100)), 100*time.Second - 1, false,
			100 * time.Second},
		{"JOB-132, JOB-177, JOB-182 at its time, by what the Job says", ended("Complete", n(100)), 100 * time.Second,
			true, 0},
		{"JOB-176 a failed one too", ended("Failed", n(100)), 100 * time.Second, true, 0},
		{"JOB-133 at once", ended("Complete", n(0)), 0, true, 0},
		{"JOB-133 never", ended("Complete", nil), 1e6 * time.Second, false, 0},
		{"JOB-177 not ended", undone, time.Hour, false, 0},
		{"JOB-177 about to fail", ended("FailureTarget", n(0)), time.Hour, false, 0},
		{"JOB-179 an hour, given ten minutes after its end", ended("Complete", n(3600)), 10 * time.Minute, false,
			time.Hour},
		{"JOB-183 ended in the future", ended("Complete", n(100)), -time.Hour, false, 100 * time.Second},
		{"JOB-183 ended in the future, to go at once", ended("Complete", n(0)), -time.Second, false, time.Nanosecond},
		{"it does not say when", timeless, time.Hour, false, 0},
		{"on its way out", going, time.Hour, false, 0},
		{"the longest time", ended("Complete", n(1<<31-1)), 0, false, (1<<31 - 1) * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			plan := Decide(Input{Now: end.Add(row.at), Job: row.job})
			want := time.Time{}
			if row.wake != 0 {
				want = end.Add(row.wake.Truncate(time.Second))
			}
			if plan.Delete != row.want || !plan.Wake.Equal(want) {
				t.Errorf("delete %t, again at %v; want %t, %v", plan.Delete, plan.Wake, row.want, want)
			}
		})
	}
}

// JOB-180, JOB-181: what the cache shows is looked at once more, and only that very Job goes, its Pods first.
func TestSecondLook(t *testing.T) {
	cached := ended("Complete", ptr.To[int32](100))
	extended, another := cached.DeepCopy(), cached.DeepCopy()
	extended.Spec.TTLSecondsAfterFinished = ptr.To[int32](3600)
	another.UID, another.Status = "other", batchv1.JobStatus{}
	for _, row := range []struct {
		name    string
		there   *batchv1.Job
		deletes bool
		again   time.Duration
	}{
		{"as the cache shows it", cached, true, 0},
		{"given more time", extended, false, 3500 * time.Second},
		{"another of the name", another, false, 0},
		{"gone", nil, false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			var asked []client.DeleteOptions
			server := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(_ context.Context, _ client.WithWatch, _ client.Object,
					opts ...client.DeleteOption) error {
					asked = append(asked, *(&client.DeleteOptions{}).ApplyOptions(opts))
					return nil
				},
			})
			if row.there != nil {
				server = server.WithObjects(row.there.DeepCopy())
			}
			live := server.Build()
			c := &collector{cached: fake.NewClientBuilder().WithObjects(cached.DeepCopy()).Build(), live: live,
				writer: live,
				now:    func() time.Time { return end.Add(100 * time.Second) }}
			result, err := c.steps().Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{
				Namespace: "default", Name: "pi"}})
			if err != nil || (len(asked) == 1) != row.deletes || result.RequeueAfter != row.again {
				t.Fatalf("asked %v, again in %v, %v", asked, result.RequeueAfter, err)
			}
			if !row.deletes {
				return
			}
			if p := asked[0].Preconditions; p == nil || *p.UID != "uid" || *p.ResourceVersion == "" ||
				*asked[0].PropagationPolicy != metav1.DeletePropagationForeground {
				t.Errorf("asked for %+v", asked[0])
			}
		})
	}
}

func TestAccount(t *testing.T) {
	running, going := ended("Complete", ptr.To[int32](100)), ended("Complete", ptr.To[int32](100))
	running.Status.Conditions = nil
	going.DeletionTimestamp = &metav1.Time{Time: end}
	for want, in := range map[string]Input{
		"waits for its ttlSecondsAfterFinished of 100 to be over, and then deletes it": {
			Job: ended("Complete", ptr.To[int32](100)), Now: end.Add(99 * time.Second)},
		"in its next pass deletes it: it has been finished for longer than its ttlSecondsAfterFinished of 100": {
			Job: ended("Complete", ptr.To[int32](100)), Now: end.Add(100 * time.Second)},
		"waits for nothing: it has no ttlSecondsAfterFinished, and stays": {Job: ended("Complete", nil), Now: end},
		"waits for nothing: it has not finished; then it stays for its ttlSecondsAfterFinished of 100": {Job: running,
			Now: end},
		"waits for nothing: it is being deleted": {Job: going, Now: end},
	} {
		if got := account(in, Decide(in)).Explanation().Summary; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	in := Input{Job: ended("Failed", ptr.To[int32](60)), Now: end}
	want := "waits for its ttlSecondsAfterFinished of 60 to be over, and then deletes it since " +
		"2026-01-05T12:00:00Z; it ends when it is 2026-01-05T12:01:00Z"
	if got := account(in, Decide(in)).Explanation().Facts[0]; got.Message != want || !got.Time.Equal(end) {
		t.Errorf("%+v", got)
	}
}
