package statefulset

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// figuresOf are replicas, ready, available, current, updated, and the numbers of current and update revision.
func figuresOf(s appsv1.StatefulSetStatus) string {
	number := func(name string) string {
		for n := 1; n < 4; n++ {
			if revision(n).Name == name {
				return fmt.Sprint(n)
			}
		}
		return name
	}
	return fmt.Sprintf("%d %d %d %d %d %s-%s", s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas,
		s.UpdatedReplicas, number(s.CurrentRevision), number(s.UpdateRevision))
}

// SET-017, SET-074, SET-112: the status counts the Pods as they are when the plan was carried out, and the rollout is
// complete when all of them are updated and ready.
func TestStatus(t *testing.T) {
	for _, row := range []struct {
		name  string
		edits []edit
		pods  string
		want  string
	}{
		{"with the first", nil, "", "1 0 0 1 1 1-1"},
		{"with the second", nil, "0r1", "2 1 1 2 2 1-1"},
		{"with all", nil, "0r1 1r1 2r1", "3 3 3 3 3 1-1"},
		{"one is going", nil, "0r1 1r1 2t1", "3 2 2 2 2 1-1"},
		{"one is not ready", nil, "0r1 1r1 2u1", "3 2 2 3 3 1-1"},
		{"one has failed", []edit{parallel, replicas(2)}, "0r1 1d1", "2 1 1 1 1 1-1"},
		{"without the one that the update ends", []edit{updated(2)}, "0r1 1r1 2r1", "3 2 2 2 0 1-2"},
		{"with the updated one", []edit{updated(2)}, "0r1 1r1", "3 2 2 2 1 1-2"},
		{"one left to update", []edit{updated(2)}, "0t1 1r2 2r2", "3 2 2 0 2 1-2"},
		{"the last is not ready", []edit{updated(2)}, "0n2 1r2 2r2", "3 2 2 0 3 1-2"},
		{"complete", []edit{updated(2)}, "0r2 1r2 2r2", "3 3 3 3 3 2-2"},
		{"OnDelete, complete", []edit{updated(2), onDelete}, "0r2 1r2 2r2", "3 3 3 3 3 2-2"},
		{"partitioned", []edit{updated(2), partition(2)}, "0r1 1r1 2r2", "3 3 3 2 1 1-2"},
		{"with a surplus Pod", []edit{updated(2), replicas(2)}, "0r2 1r2 2t1", "3 2 2 0 2 1-2"},
		{"ready and not available", []edit{minReady(7200)}, "0r1", "1 1 0 1 1 1-1"},
		{"none asked for", []edit{updated(2), replicas(0)}, "", "0 0 0 0 0 2-2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(newSet(row.edits...), row.pods, "")
			in.Set.Generation, in.Set.Status.ObservedGeneration = 4, 3
			status := Decide(in).Status
			if got := figuresOf(status); got != row.want || status.ObservedGeneration != 4 {
				t.Errorf("got %s, want %s; generation %d", got, row.want, status.ObservedGeneration)
			}
		})
	}
}

// A pass that failed says what was there, not what was planned.
func TestStatusAfterFailure(t *testing.T) {
	in := input(newSet(updated(2)), "0r1 1r1", "")
	if got := figuresOf(afterFailure(in, Decide(in))); got != "2 2 2 2 0 1-2" {
		t.Error(got)
	}
}

// SET-017, SET-074: collisions are counted, and the next name is another.
func TestStatusAfterCollision(t *testing.T) {
	in := Input{Now: now, Set: newSet()}
	first := Decide(in).History.Create.Name
	in.Set.Status = afterCollision(in)
	if second := Decide(in).History.Create.Name; *in.Set.Status.CollisionCount != 1 || second == first {
		t.Errorf("%d collisions, %s after %s", *in.Set.Status.CollisionCount, second, first)
	}
}

func limit(n int32) edit { return func(s *appsv1.StatefulSet) { s.Spec.RevisionHistoryLimit = &n } }

// SET-074: revisions beyond the limit go, the oldest first, but none that a Pod is of or that the set came from.
func TestHistory(t *testing.T) {
	for _, row := range []struct {
		name  string
		edits []edit
		pods  string
		want  string
	}{
		{"within the limit", []edit{limit(2)}, "0r3 1r3 2r3", ""},
		{"beyond the limit", []edit{limit(1)}, "0r3 1r3 2r3", "forget 1"},
		{"none kept", []edit{limit(0)}, "0r3 1r3 2r3", "forget 1, forget 2"},
		{"a Pod's", []edit{limit(0), onDelete}, "0r3 1r1 2r3", "forget 2"},
		{"the one that the set came from", []edit{limit(0), onDelete}, "0r3 1r3 2n3", "forget 2"},
		{"no limit", []edit{func(s *appsv1.StatefulSet) { s.Spec.RevisionHistoryLimit = nil }}, "0r3 1r3 2r3", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(newSet(append([]edit{updated(3)}, row.edits...)...), row.pods, "")
			in.Revisions = []*appsv1.ControllerRevision{revision(1), revision(2), revision(3)}
			if got := effects(Decide(in)); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// SET-074: a template that comes back has its revision again, as the newest, and the Pods that are of it stay.
func TestTemplateComesBack(t *testing.T) {
	in := input(newSet(), "0r1 1r1 2r2", "")
	plan := Decide(in)
	if got := effects(plan); got != "renumber 3, delete web-2 Outdated" ||
		plan.Status.UpdateRevision != revision(1).Name {
		t.Errorf("%s, %s", got, figuresOf(plan.Status))
	}
}

// SET-079: a Pod below the partition is not made of another revision when its own cannot be read; the pass says so.
func TestUnreadableRevision(t *testing.T) {
	in := input(newSet(updated(2), partition(3)), "0r1 2r1", "")
	in.Revisions[0] = in.Revisions[0].DeepCopy()
	in.Revisions[0].Data = runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}
	if got := effects(Decide(in)); got != "fail" {
		t.Error(got)
	}
}

// Without spec.replicas there is one.
func TestDefaultReplicas(t *testing.T) {
	set := newSet()
	set.Spec.Replicas = nil
	if got := effects(Decide(input(set, "0r1", ""))); got != "" {
		t.Error(got)
	}
	set.Spec.Replicas = ptr.To[int32](2)
	if got := effects(Decide(input(set, "0r1", ""))); got != "create web-1 of 1" {
		t.Error(got)
	}
}
