package deployment

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestRecreate(t *testing.T) {
	terminating := func(set *appsv1.ReplicaSet) { one := int32(1); set.Status.TerminatingReplicas = &one }
	unanswered := func(set *appsv1.ReplicaSet) { set.Generation = 2 }
	for _, c := range []struct {
		name       string
		old        func(*appsv1.ReplicaSet)
		size       int32
		unfinished int
		want       map[string]int32
	}{
		{"DEP-072 all old Pods are stopped first", nil, 3, 3, map[string]int32{"web:1": 0}},
		{"DEP-072 none comes while the status still counts old ones",
			func(s *appsv1.ReplicaSet) { s.Status.Replicas = 1 }, 0, 0, nil},
		{"DEP-072 nor while old ones are terminating", terminating, 0, 0, nil},
		{"DEP-072 nor while their objects are there", nil, 0, 2, nil},
		{"DEP-072 nor before the ReplicaSet has been told", unanswered, 0, 0, nil},
		{"DEP-072 then the new ones come", nil, 0, 0, map[string]int32{"web:2": 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(3, recreate)
			old := newSet(d, 1, c.size, c.size)
			if c.old != nil {
				c.old(old)
			}
			in := Input{Now: now, Deployment: d, ReplicaSets: []*appsv1.ReplicaSet{old},
				Unfinished: map[types.UID]int{old.UID: c.unfinished}}
			if got := sizes(runInput(t, in)); !maps.Equal(got, c.want) {
				t.Errorf("sizes become %v, want %v", got, c.want)
			}
		})
	}
	t.Run("DEP-073 without an update sizes follow at once", func(t *testing.T) {
		d := newDeployment(5, recreate)
		if got := sizes(run(t, d, newSet(d, 2, 3, 3))); !maps.Equal(got, map[string]int32{"web:2": 5}) {
			t.Errorf("sizes become %v", got)
		}
	})
}
