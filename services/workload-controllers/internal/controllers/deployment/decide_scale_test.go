package deployment

import (
	"maps"
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
