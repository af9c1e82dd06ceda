package deployment

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		name               string
		replicas           int32
		surge, unavailable string
		wantSurge, wantUn  int32
	}{
		{"DEP-062 DEP-063 25% of 3", 3, "25%", "25%", 1, 0},
		{"DEP-062 25% of 4", 4, "25%", "25%", 1, 1},
		{"DEP-063 25% of 5", 5, "25%", "25%", 2, 1},
		{"DEP-062 25% of 7", 7, "25%", "25%", 2, 1},
		{"DEP-063 25% of 10", 10, "25%", "25%", 3, 2},
		{"DEP-062 DEP-063 30% of 4", 4, "30%", "30%", 2, 1},
		{"DEP-052 25% of 1", 1, "25%", "25%", 1, 0},
		{"DEP-052 25% of 2", 2, "25%", "25%", 1, 0},
		{"DEP-052 25% of 8", 8, "25%", "25%", 2, 2},
		{"DEP-067 DEP-068 30% of 10", 10, "30%", "30%", 3, 3},
		{"DEP-065 both round to nothing", 3, "0", "10%", 0, 1},
		{"DEP-065 both are nothing", 3, "0%", "0%", 0, 1},
		{"DEP-069 only maxUnavailable 1", 3, "25%", "1", 1, 1},
		{"DEP-069 only maxSurge 1", 3, "1", "25%", 1, 0},
		{"DEP-069 both 1", 3, "1", "1", 1, 1},
		{"DEP-070 surge of 100% of 1", 1, "100%", "25%", 1, 0},
		{"DEP-066 surge beyond 100%", 2, "200%", "0", 4, 0},
		{"no more can be missing than there are", 2, "0", "5", 0, 2},
		{"DEP-065 less than nothing counts as nothing", 3, "-1", "-1", 0, 1},
		{"DEP-065 what is no number counts as nothing", 3, "many", "many", 0, 1},
		{"nothing of nothing", 0, "25%", "25%", 0, 0},
		{"no more in all than can be counted", 10, "2147483647", "25%", 2147483637, 2},
		{"the most in all that can be counted", 10, "2147483637", "25%", 2147483637, 2},
		{"one less", 10, "2147483636", "25%", 2147483636, 2},
		{"a percentage of more than can be counted", 2000, "2147483647%", "0", 2147481647, 0},
		{"a percentage that wraps around", 100, "4294967297%", "0", 2147483547, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			surge, unavailable := bounds(newDeployment(c.replicas, strategy(c.surge, c.unavailable)))
			if surge != c.wantSurge || unavailable != c.wantUn {
				t.Errorf("surge %d, unavailable %d; want %d, %d", surge, unavailable, c.wantSurge, c.wantUn)
			}
		})
	}
	t.Run("DEP-061 each defaults to 25% on its own", func(t *testing.T) {
		d := newDeployment(10, func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate = nil })
		if surge, unavailable := bounds(d); surge != 3 || unavailable != 2 {
			t.Errorf("surge %d, unavailable %d; want 3, 2", surge, unavailable)
		}
	})
}

// state is a ReplicaSet in figures.
type state struct {
	number          int
	size, available int32
}

func TestRollingUpdate(t *testing.T) {
	for _, c := range []struct {
		name               string
		replicas           int32
		surge, unavailable string
		sets               []state
		want               map[string]int32
	}{
		{"DEP-021 the first ReplicaSet has the full size at once", 3, "25%", "25%", nil, map[string]int32{"web:2": 3}},
		{"DEP-054 DEP-053 step 1: a new Pod first", 3, "25%", "25%", []state{{1, 3, 3}}, map[string]int32{"web:2": 1}},
		{"DEP-053 nothing while the new Pod is not available", 3, "25%", "25%", []state{{1, 3, 3}, {2, 1, 0}}, nil},
		{"DEP-054 step 2: an old Pod goes", 3, "25%", "25%", []state{{1, 3, 3}, {2, 1, 1}},
			map[string]int32{"web:1": 2}},
		{"DEP-054 step 3", 3, "25%", "25%", []state{{1, 2, 2}, {2, 1, 1}}, map[string]int32{"web:2": 2}},
		{"DEP-054 the last step", 3, "25%", "25%", []state{{1, 1, 1}, {2, 3, 3}}, map[string]int32{"web:1": 0}},
		{"DEP-049 the end", 3, "25%", "25%", []state{{1, 0, 0}, {2, 3, 3}}, nil},
		{"DEP-067 DEP-068 30% of 10: both at once", 10, "30%", "30%", []state{{1, 10, 10}},
			map[string]int32{"web:1": 7, "web:2": 3}},
		{"DEP-068 the new one grows as old ones go", 10, "30%", "30%", []state{{1, 7, 7}, {2, 3, 0}},
			map[string]int32{"web:2": 6}},
		{"DEP-067 the old one falls as new ones serve", 10, "30%", "30%", []state{{1, 7, 7}, {2, 6, 2}},
			map[string]int32{"web:1": 5}},
		{"DEP-069 no surge: an old Pod goes first", 3, "0", "1", []state{{1, 3, 3}}, map[string]int32{"web:1": 2,
			"web:2": 0}},
		{"DEP-069 no surge: then a new one comes", 3, "0", "1", []state{{1, 2, 2}, {2, 0, 0}},
			map[string]int32{"web:2": 1}},
		{"DEP-115 both 1: old 2 while no new Pod is ready", 3, "1", "1", []state{{1, 3, 3}},
			map[string]int32{"web:1": 2, "web:2": 1}},
		{"DEP-057 unavailable old Pods go first, whosever they are", 4, "1", "1", []state{{0, 1, 1}, {1, 3, 1},
			{2, 1, 1}}, map[string]int32{"web:1": 1}},
		{"DEP-057 of available ones the oldest ReplicaSet's", 4, "1", "1", []state{{0, 2, 2}, {1, 2, 2}, {2, 1, 1}},
			map[string]int32{"web:0": 0}},
		{"DEP-075 DEP-076 the one that was growing falls", 5, "25%", "25%", []state{{1, 3, 3}},
			map[string]int32{"web:2": 4}},
		{"DEP-076 and goes as far as the new ones serve", 5, "25%", "25%", []state{{1, 3, 3}, {2, 4, 2}},
			map[string]int32{"web:1": 2}},
		{"DEP-077 back to an earlier template", 3, "25%", "25%", []state{{2, 0, 0}, {3, 3, 3}},
			map[string]int32{"web:2": 1}},
		{"DEP-103 blocked at 8 and 5", 10, "3", "2", []state{{1, 8, 8}, {2, 5, 0}}, nil},
		{"DEP-103 on the way there", 10, "3", "2", []state{{1, 10, 10}}, map[string]int32{"web:1": 8, "web:2": 3}},
		{"DEP-029 a size that was written directly is set back", 3, "25%", "25%", []state{{2, 5, 5}},
			map[string]int32{"web:2": 3}},
		{"DEP-029 also of an old one", 3, "25%", "25%", []state{{1, 2, 0}, {2, 3, 3}}, map[string]int32{"web:1": 0}},
		{"DEP-057 no more unavailable ones go than may be missing", 4, "1", "1", []state{{0, 2, 0}, {1, 3, 0},
			{2, 2, 2}}, map[string]int32{"web:0": 0, "web:1": 1}},
		{"DEP-054 an old one without replicas is passed over", 3, "25%", "25%", []state{{0, 0, 0}, {1, 3, 3},
			{2, 1, 1}}, map[string]int32{"web:1": 2}},
		{"DEP-058 a bad image stops at the surge", 3, "25%", "25%", []state{{0, 0, 0}, {1, 3, 3}, {2, 1, 0}}, nil},
		{"a status that is behind grants nothing twice", 10, "3", "3", []state{{1, 7, 10}, {2, 6, 3}},
			map[string]int32{"web:1": 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(c.replicas, strategy(c.surge, c.unavailable))
			var sets []*appsv1.ReplicaSet
			for _, s := range c.sets {
				sets = append(sets, newSet(d, s.number, s.size, s.available))
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
}

func TestReasonsOfResizing(t *testing.T) {
	d := newDeployment(4, strategy("1", "1"))
	plan := run(t, d, newSet(d, 1, 3, 1), newSet(d, 2, 2, 2))
	if len(plan.Updates) != 1 || plan.Updates[0].Reason != ReasonUnhealthy {
		t.Errorf("updates %+v, want one for unhealthy replicas", plan.Updates)
	}
}

// DEP-068: what has been told to go counts until it is gone, and nothing follows from a status that does not speak of
// the last size yet.
func TestBoundsAreOnPodsNotOnSizes(t *testing.T) {
	unanswered := func(set *appsv1.ReplicaSet) { set.Generation = 2 }
	lingering := func(set *appsv1.ReplicaSet) { set.Status.Replicas = 10 }
	d := newDeployment(10, strategy("3", "3"))
	for _, c := range []struct {
		name string
		sets []*appsv1.ReplicaSet
		want map[string]int32
	}{
		{"old Pods that linger leave no room", []*appsv1.ReplicaSet{newSet(d, 1, 7, 7, lingering), newSet(d, 2, 3, 0)},
			nil},
		{"an old size that is not answered leaves none either", []*appsv1.ReplicaSet{newSet(d, 1, 7, 7, unanswered),
			newSet(d, 2, 3, 3)}, nil},
		{"a new size that is not answered takes nothing away", []*appsv1.ReplicaSet{newSet(d, 1, 7, 7),
			newSet(d, 2, 6, 6, unanswered)}, nil},
		{"a first ReplicaSet beside an unanswered one starts empty",
			[]*appsv1.ReplicaSet{newSet(d, 1, 7, 7, unanswered)}, map[string]int32{"web:2": 0}},
		{"all answered", []*appsv1.ReplicaSet{newSet(d, 1, 7, 7), newSet(d, 2, 3, 3)}, map[string]int32{"web:1": 4,
			"web:2": 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sizes(run(t, d, c.sets...)); !maps.Equal(got, c.want) {
				t.Errorf("sizes become %v, want %v", got, c.want)
			}
		})
	}
}
