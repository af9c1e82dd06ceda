package deployment

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/services/workload-controllers/internal/revision"
)

func TestScale(t *testing.T) {
	for _, c := range []struct {
		name         string
		replicas     int32
		change       func(*appsv1.Deployment)
		former, most int32 // spec.replicas and maximum when the ReplicaSets were sized
		sets         []state
		want         map[string]int32
	}{
		{"DEP-096 a single one gets all at once", 10, strategy("25%", "25%"), 3, 4, []state{{2, 3, 3}},
			map[string]int32{"web:2": 10}},
		{"DEP-096 or loses them", 1, strategy("25%", "25%"), 3, 4, []state{{2, 3, 3}}, map[string]int32{"web:2": 1}},
		{"DEP-104 DEP-105 in the middle of a rollout, in proportion", 15, strategy("3", "2"), 10, 13,
			[]state{{1, 8, 8}, {2, 5, 0}}, map[string]int32{"web:1": 11, "web:2": 7}},
		{"DEP-106 down in proportion", 10, strategy("3", "2"), 15, 18, []state{{1, 11, 11}, {2, 7, 0}},
			map[string]int32{"web:1": 8, "web:2": 5}},
		{"DEP-106 what is left over goes to the largest", 11, strategy("3", "2"), 10, 13, []state{{0, 5, 5}, {1, 4, 4},
			{2, 4, 0}}, map[string]int32{"web:0": 6}},
		{"DEP-102 those without replicas get none", 15, strategy("3", "2"), 10, 13, []state{{0, 0, 0}, {1, 8, 8},
			{2, 5, 0}}, map[string]int32{"web:1": 11, "web:2": 7}},
		{"DEP-101 paused in the middle of a rollout", 15,
			func(d *appsv1.Deployment) { strategy("3", "2")(d); paused(d) }, 10, 13, []state{{1, 8, 8}, {2, 5, 0}},
			map[string]int32{"web:1": 11, "web:2": 7}},
		{"DEP-116 paused: sizes stay", 10, func(d *appsv1.Deployment) { strategy("3", "2")(d); paused(d) }, 10, 13,
			[]state{{1, 7, 7}, {2, 3, 0}}, nil},
		{"DEP-109 paused: scaling works", 5, paused, 3, 4, []state{{2, 3, 3}}, map[string]int32{"web:2": 5}},
		{"DEP-109 paused with a changed template: the old one is scaled", 5, paused, 3, 4, []state{{1, 3, 3}},
			map[string]int32{"web:1": 5}},
		{"DEP-118 paused from the beginning: no ReplicaSet", 3, paused, 0, 0, nil, nil},
		{"to nothing", 0, strategy("3", "2"), 10, 13, []state{{1, 8, 8}, {2, 5, 0}}, map[string]int32{"web:1": 0,
			"web:2": 0}},
		{"from nothing", 3, strategy("3", "2"), 0, 0, []state{{2, 0, 0}}, map[string]int32{"web:2": 3}},
		{"a current one that carries all ends the others", 10, strategy("3", "2"), 10, 13,
			[]state{{1, 3, 3}, {2, 10, 10}}, map[string]int32{"web:1": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(c.replicas, c.change)
			var sets []*appsv1.ReplicaSet
			for _, s := range c.sets {
				sets = append(sets, newSet(d, s.number, s.size, s.available, sizedFor(c.former, c.most)))
			}
			plan := run(t, d, sets...)
			if got := sizes(plan); !maps.Equal(got, c.want) {
				t.Errorf("sizes become %v, want %v", got, c.want)
			}
			if plan.Create != nil {
				t.Errorf("ReplicaSet %s is created", plan.Create.ReplicaSet.Name)
			}
		})
	}
}

// DEP-101, DEP-104: ReplicaSets that were sized for different numbers of replicas.
func TestScaleOfUnlike(t *testing.T) {
	for _, c := range []struct {
		name     string
		replicas int32
		sets     []state
		sizedFor [][2]int32 // spec.replicas and maximum when each was sized
		want     map[string]int32
	}{
		{"a current one that carries all ends the others", 10, []state{{1, 3, 3}, {2, 10, 10}},
			[][2]int32{{5, 6}, {10, 13}}, map[string]int32{"web:1": 0}},
		{"not while one of its Pods is unavailable", 10, []state{{1, 3, 3}, {2, 10, 9}}, [][2]int32{{5, 6}, {10, 13}},
			nil},
		{"not while it is one smaller: the other keeps its part", 10, []state{{1, 3, 3}, {2, 9, 9}},
			[][2]int32{{5, 6}, {10, 13}}, map[string]int32{"web:1": 4}},
		{"not when it was sized for another number", 10, []state{{1, 3, 3}, {2, 10, 10}}, [][2]int32{{5, 6}, {5, 6}},
			nil},
		{"without a current one: of equals the newer gets what is left over", 10, []state{{0, 4, 4}, {1, 4, 4}},
			[][2]int32{{8, 11}, {8, 11}}, map[string]int32{"web:0": 5, "web:1": 8}},
		{"without a current one: of equals the older shrinks first", 4, []state{{0, 4, 4}, {1, 4, 4}},
			[][2]int32{{8, 11}, {8, 11}}, map[string]int32{"web:0": 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(c.replicas, strategy("3", "2"))
			var sets []*appsv1.ReplicaSet
			for i, s := range c.sets {
				sets = append(sets, newSet(d, s.number, s.size, s.available, sizedFor(c.sizedFor[i][0],
					c.sizedFor[i][1])))
			}
			if got := sizes(run(t, d, sets...)); !maps.Equal(got, c.want) {
				t.Errorf("sizes become %v, want %v", got, c.want)
			}
			slices.Reverse(sets)
			if got := sizes(run(t, d, sets...)); !maps.Equal(got, c.want) {
				t.Errorf("in another order of the cache sizes become %v, want %v", got, c.want)
			}
		})
	}
	t.Run("DEP-104 without the former maximum the status tells", func(t *testing.T) {
		d := newDeployment(15, strategy("3", "2"), withStatus(appsv1.DeploymentStatus{Replicas: 13}))
		unmarked := func(set *appsv1.ReplicaSet) {
			sizedFor(10, 0)(set)
			delete(set.Annotations, revision.MaxAnnotation)
		}
		beyond := func(set *appsv1.ReplicaSet) {
			sizedFor(10, 0)(set)
			set.Annotations[revision.MaxAnnotation] = "2147483648"
		}
		got := sizes(run(t, d, newSet(d, 1, 8, 8, unmarked), newSet(d, 2, 5, 0, beyond)))
		if want := map[string]int32{"web:1": 11, "web:2": 7}; !maps.Equal(got, want) {
			t.Errorf("sizes become %v, want %v", got, want)
		}
	})
	t.Run("DEP-109 paused with all at nothing: the newest old one is scaled", func(t *testing.T) {
		d := newDeployment(3, paused)
		sets := []*appsv1.ReplicaSet{newSet(d, 0, 0, 0, sizedFor(0, 0)), newSet(d, 1, 0, 0, sizedFor(0, 0))}
		if got := sizes(run(t, d, sets...)); !maps.Equal(got, map[string]int32{"web:1": 3}) {
			t.Errorf("sizes become %v", got)
		}
	})
	t.Run("DEP-109 scaling works also when the pause has been reported", func(t *testing.T) {
		d := newDeployment(5, paused, withStatus(progressed(reasonPaused, 0)))
		if got := sizes(run(t, d, newSet(d, 2, 3, 3, sizedFor(3, 4)))); !maps.Equal(got, map[string]int32{"web:2": 5}) {
			t.Errorf("sizes become %v", got)
		}
	})
}

// DEP-105: ReplicaSets say for how many replicas they were sized: those that were, and no others.
func TestWhichAreMarkedAsSized(t *testing.T) {
	unanswered := func(set *appsv1.ReplicaSet) { set.Generation = 2 }
	for _, c := range []struct {
		name               string
		replicas           int32
		surge, unavailable string
		sets               func(*appsv1.Deployment) []*appsv1.ReplicaSet
		want               map[string]string // desired and maximum of the ReplicaSets that are changed
	}{
		{"another maximum", 10, "5", "2", func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{newSet(d, 2, 10, 10, sizedFor(10, 13))}
		}, map[string]string{"web:2": "10 15"}},
		{"another number with the same maximum", 11, "2", "2", func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{newSet(d, 2, 10, 10, sizedFor(10, 13))}
		}, map[string]string{"web:2": "11 13"}},
		{"one without replicas is left alone", 10, "3", "2", func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{newSet(d, 0, 0, 0, sizedFor(5, 6)), newSet(d, 1, 3, 3, sizedFor(5, 6)),
				newSet(d, 2, 10, 10, sizedFor(10, 13))}
		}, map[string]string{"web:1": "10 13"}},
		{"so is one whose size nobody looked at", 10, "3", "3", func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{newSet(d, 1, 10, 10, unanswered, sizedFor(10, 12)),
				newSet(d, 2, 3, 3, sizedFor(10, 12))}
		}, nil},
		{"and an old one that cannot fall yet", 3, "25%", "25%", func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{newSet(d, 1, 3, 3, sizedFor(3, 9)), newSet(d, 2, 1, 0)}
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(c.replicas, strategy(c.surge, c.unavailable), atRevision(2))
			got := map[string]string{}
			for _, update := range run(t, d, c.sets(d)...).Updates {
				to := update.To
				got[to.Spec.Template.Spec.Containers[0].Image] = to.Annotations[revision.DesiredAnnotation] + " " +
					to.Annotations[revision.MaxAnnotation]
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("marked %v, want %v", got, c.want)
			}
		})
	}
	t.Run("one that is made empty is marked, too", func(t *testing.T) {
		d := newDeployment(10, strategy("3", "3"))
		made := run(t, d, newSet(d, 1, 7, 7, unanswered)).Create
		if made == nil || sizeOf(made.ReplicaSet) != 0 || made.ReplicaSet.Annotations[revision.MaxAnnotation] != "13" {
			t.Errorf("made %+v", made)
		}
	})
}

// DEP-105: after a pass nothing looks rescaled any more, or no rollout would ever go on.
func TestScalingIsRemembered(t *testing.T) {
	d := newDeployment(15, strategy("3", "2"))
	sets := []*appsv1.ReplicaSet{newSet(d, 1, 8, 8, sizedFor(10, 13)), newSet(d, 2, 5, 0, sizedFor(10, 13))}
	plan := run(t, d, sets...)
	if len(plan.Updates) != 2 {
		t.Fatalf("%d updates, want 2", len(plan.Updates))
	}
	var after []*appsv1.ReplicaSet
	for _, update := range plan.Updates {
		// DEP-030
		if got := update.To.Annotations; got[revision.DesiredAnnotation] != "15" ||
			got[revision.MaxAnnotation] != "18" {
			t.Errorf("annotations %v, want 15 desired and 18 at most", got)
		}
		after = append(after, update.To)
	}
	if again := run(t, d, after...); len(again.Updates) != 0 {
		t.Errorf("a second pass changes sizes to %v", sizes(again))
	}
}
