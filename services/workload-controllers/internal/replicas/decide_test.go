package replicas

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/workload-controllers/internal/pace"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/rank"
)

var now = time.Unix(1_700_000_000, 0)

func newSet(replicas int32, changes ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "frontend", UID: "rs-uid", Generation: 2},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "frontend"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{"tier": "frontend"}, Annotations: map[string]string{"a": "b"},
					Finalizers: []string{"x/y"},
				},
				Spec: corev1.PodSpec{PriorityClassName: "high",
					Containers: []corev1.Container{{Name: "php-redis", Image: "gb-frontend:v5"}}},
			},
		},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

func deleting(set *appsv1.ReplicaSet) { set.DeletionTimestamp = &metav1.Time{Time: now} }

// candidates are Pods of which the last goes first.
func candidates(n int) []rank.Pod {
	pods := make([]rank.Pod, n)
	for i := range pods {
		pods[i] = rank.Pod{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Node: "n", Phase: corev1.PodRunning,
			Ready: true, Cost: int32(-i)}
	}
	return pods
}

func run(t *testing.T, in Input) Plan {
	t.Helper()
	set, pods := in.ReplicaSet.DeepCopy(), slices.Clone(in.Candidates)
	plan, again := Decide(in), Decide(in)
	if !reflect.DeepEqual(plan, again) {
		t.Errorf("two decisions differ:\n%+v\n%+v", plan, again)
	}
	if !reflect.DeepEqual(set, in.ReplicaSet) || !slices.Equal(pods, in.Candidates) {
		t.Error("the decision changed its input")
	}
	return plan
}

func TestDecide(t *testing.T) {
	pod := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p"}}}
	for _, c := range []struct {
		name           string
		set            *appsv1.ReplicaSet
		counts         podset.Counts
		orphans        []*corev1.Pod
		create, delete int
		reason         Reason
	}{
		{"DEP-146 none of three", newSet(3), podset.Counts{}, nil, 3, 0, ReasonTooFew},
		{"DEP-146 SAF-024 three of three", newSet(3), podset.Counts{Active: 3}, nil, 0, 0, ReasonSteady},
		{"DEP-153 one is missing", newSet(3), podset.Counts{Active: 2}, nil, 1, 0, ReasonTooFew},
		{"DEP-154 SAF-174 one is terminating: it is replaced at once", newSet(3),
			podset.Counts{Active: 2, Terminating: 1}, nil, 1, 0, ReasonTooFew},
		{"DEP-161 two too many", newSet(3), podset.Counts{Active: 5}, nil, 0, 2, ReasonTooMany},
		{"DEP-176 to nothing", newSet(0), podset.Counts{Active: 3}, nil, 0, 3, ReasonTooMany},
		{"DEP-165 unset means one", newSet(0, func(s *appsv1.ReplicaSet) { s.Spec.Replicas = nil }), podset.Counts{},
			nil, 1, 0, ReasonTooFew},
		{"DEP-157 a pass has a bound", newSet(501), podset.Counts{}, nil, 500, 0, ReasonTooFew},
		{"the bound holds for deletions, too", newSet(0), podset.Counts{Active: 501}, nil, 0, 500, ReasonTooMany},
		{"DEP-162 orphans are adopted before any Pod is made", newSet(3), podset.Counts{}, pod, 0, 0, ReasonOwners},
		{"DEP-175 Pods that no longer match are released before any Pod is made", newSet(3),
			podset.Counts{Active: 2, Unmatched: pod}, nil, 0, 0, ReasonOwners},
		{"DEP-159 a ReplicaSet that is being deleted does nothing", newSet(3, deleting),
			podset.Counts{Active: 1, Unmatched: pod}, pod, 0, 0, ReasonDeleting},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := run(t, Input{Now: now, ReplicaSet: c.set, Counts: c.counts, Orphans: c.orphans,
				Candidates: candidates(int(c.counts.Active))})
			if plan.Create != c.create || len(plan.Delete) != c.delete || plan.Reason != c.reason {
				t.Errorf("create %d, delete %d, %s; want %d, %d, %s", plan.Create, len(plan.Delete), plan.Reason,
					c.create, c.delete, c.reason)
			}
			if settling := len(plan.Adopt)+len(plan.Release) > 0; settling != (c.reason == ReasonOwners) {
				t.Errorf("adopts %d, releases %d", len(plan.Adopt), len(plan.Release))
			}
		})
	}
	t.Run("DEP-178 the lowest ranked go", func(t *testing.T) {
		plan := run(t, Input{Now: now, ReplicaSet: newSet(3), Counts: podset.Counts{Active: 5},
			Candidates: candidates(5)})
		if plan.Delete[0].Name != "4" || plan.Delete[1].Name != "3" {
			t.Errorf("deletes %v", plan.Delete)
		}
	})
}

// DEP-157: Pods that fail as soon as they are made are replaced more and more slowly, and the pass is there when it
// is time.
func TestFailingPodsAreReplacedSlowly(t *testing.T) {
	for _, c := range []struct {
		name   string
		failed time.Duration // how long ago one was made that has failed
		create int
		reason Reason
		wake   time.Duration
	}{
		{"it has just failed", time.Second, 0, ReasonFailing, time.Second},
		{"it is time for half of the missing", 2 * time.Second, 4, ReasonTooFew, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{
				Now: now, ReplicaSet: newSet(9), Counts: podset.Counts{Active: 1, NextAvailable: now.Add(time.Minute)},
				Made: []pace.Pod{{Created: now.Add(-c.failed), Phase: corev1.PodFailed}},
			}
			plan := run(t, in)
			if wake := cmp.Or(c.wake, time.Minute); plan.Create != c.create || plan.Reason != c.reason ||
				!plan.Wake.Equal(now.Add(wake)) {
				t.Errorf("create %d, %s, wake at %v", plan.Create, plan.Reason, plan.Wake)
			}
		})
	}
}

func TestPrototype(t *testing.T) {
	set := newSet(3)
	pod := prototype(set, replicaSets.GVK)
	if pod.GenerateName != "frontend-" || pod.Name != "" || pod.Namespace != "default" { // DEP-149, DEP-024
		t.Errorf("name %q, generated from %q, in %q", pod.Name, pod.GenerateName, pod.Namespace)
	}
	template := set.Spec.Template
	if !reflect.DeepEqual(pod.Labels, template.Labels) || !reflect.DeepEqual(pod.Annotations, template.Annotations) ||
		!reflect.DeepEqual(pod.Finalizers, template.Finalizers) {
		t.Errorf("metadata %+v", pod.ObjectMeta)
	}
	if !reflect.DeepEqual(pod.Spec, template.Spec) { // POD-037, SCH-005
		t.Errorf("spec %+v", pod.Spec)
	}
	yes := true
	want := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "frontend", UID: "rs-uid",
		Controller: &yes, BlockOwnerDeletion: &yes}}
	if !reflect.DeepEqual(pod.OwnerReferences, want) { // DEP-148
		t.Errorf("owner references %+v", pod.OwnerReferences)
	}
}
