package conditions

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Unix(1_700_000_000, 0)

// at is a time some seconds after the start.
func at(seconds int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
}

func progressing(status corev1.ConditionStatus, reason, message string, transition,
	update int) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason,
		Message: message, LastTransitionTime: at(transition), LastUpdateTime: at(update)}
}

// DEP-042: the times say since when a condition holds and when it was last reported again.
func TestTimes(t *testing.T) {
	had := progressing("True", "Created", "made", 1, 2)
	for _, c := range []struct {
		name    string
		next    appsv1.DeploymentCondition
		want    appsv1.DeploymentCondition
		changed bool
	}{
		{"the same: no time moves", progressing("True", "Created", "made", 9, 2),
			progressing("True", "Created", "made", 1, 2), false},
		{"another message: an update, no transition", progressing("True", "Created", "more", 9, 0),
			progressing("True", "Created", "more", 1, 30), true},
		{"another reason: an update, no transition", progressing("True", "Updated", "made", 9, 0),
			progressing("True", "Updated", "made", 1, 30), true},
		{"another status: both", progressing("False", "Created", "made", 9, 0),
			progressing("False", "Created", "made", 30, 30), true},
		{"the same with a time of its own: an update", progressing("True", "Created", "made", 9, 20),
			progressing("True", "Created", "made", 1, 20), true},
		{"another one with a time of its own: the update is now", progressing("True", "Updated", "made", 9, 20),
			progressing("True", "Updated", "made", 1, 30), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, changed := Deployment.Set([]appsv1.DeploymentCondition{had}, c.next, at(30).Time)
			if len(got) != 1 || got[0] != c.want || changed != c.changed {
				t.Errorf("got %+v, %t; want %+v, %t", got, changed, c.want, c.changed)
			}
		})
	}
	t.Run("without a time of its own the last one stays", func(t *testing.T) {
		next := had
		next.LastUpdateTime = metav1.Time{}
		if got, changed := Deployment.Set([]appsv1.DeploymentCondition{had}, next, at(30).Time); got[0] != had ||
			changed {
			t.Errorf("got %+v, %t", got, changed)
		}
	})
	t.Run("a first one has both times now", func(t *testing.T) {
		got, changed := Deployment.Set(nil, progressing("True", "Created", "made", 9, 9), at(30).Time)
		if got[0] != progressing("True", "Created", "made", 30, 30) || !changed {
			t.Errorf("got %+v, %t", got, changed)
		}
	})
}

// POD-114, POD-116: what only some kinds of condition have.
func TestPodCondition(t *testing.T) {
	had := corev1.PodCondition{Type: corev1.PodReady, Status: "True", LastProbeTime: at(1), LastTransitionTime: at(2),
		ObservedGeneration: 4}
	next := corev1.PodCondition{Type: corev1.PodReady, Status: "True", ObservedGeneration: 4}
	if got, changed := Pod.Set([]corev1.PodCondition{had}, next, at(30).Time); got[0] != had || changed {
		t.Errorf("the same: %+v, %t", got, changed)
	}
	next.ObservedGeneration = 5
	want := had
	want.ObservedGeneration = 5
	if got, changed := Pod.Set([]corev1.PodCondition{had}, next, at(30).Time); got[0] != want || !changed {
		t.Errorf("of another generation: %+v, %t", got, changed)
	}
	next.LastProbeTime, want.LastProbeTime = at(7), at(7)
	if got, _ := Pod.Set([]corev1.PodCondition{had}, next, at(30).Time); got[0] != want {
		t.Errorf("probed again: %+v", got)
	}
}

// Each accessor reads and writes what its type has.
func TestKinds(t *testing.T) {
	namespace := corev1.NamespaceCondition{Type: "A", Status: "True", Reason: "R", Message: "M"}
	if got, changed := Namespace.Set(nil, namespace, start); !changed || got[0].LastTransitionTime != at(0) {
		t.Errorf("of a Namespace: %+v", got)
	}
	set := appsv1.ReplicaSetCondition{Type: "A", Status: "True", Reason: "R", Message: "M"}
	if got, changed := ReplicaSet.Set(nil, set, start); !changed || got[0].LastTransitionTime != at(0) {
		t.Errorf("of a ReplicaSet: %+v", got)
	}
	node := corev1.NodeCondition{Type: "A", Status: "True", Reason: "R", Message: "M", LastHeartbeatTime: at(9)}
	if got, changed := Node.Set(nil, node, start); !changed || got[0].LastTransitionTime != at(0) ||
		got[0].LastHeartbeatTime != at(9) {
		t.Errorf("of a Node: %+v", got)
	}
	if Node(&node) != (Fields[corev1.NodeConditionType]{Type: "A", Status: "True", Reason: "R", Message: "M",
		LastTransitionTime: &node.LastTransitionTime}) {
		t.Errorf("of a Node: %+v", Node(&node))
	}
	if Namespace(&namespace) != (Fields[corev1.NamespaceConditionType]{Type: "A", Status: "True", Reason: "R",
		Message: "M", LastTransitionTime: &namespace.LastTransitionTime}) {
		t.Errorf("of a Namespace: %+v", Namespace(&namespace))
	}
	if ReplicaSet(&set) != (Fields[appsv1.ReplicaSetConditionType]{Type: "A", Status: "True", Reason: "R",
		Message: "M", LastTransitionTime: &set.LastTransitionTime}) {
		t.Errorf("of a ReplicaSet: %+v", ReplicaSet(&set))
	}
}

// After any sequence of sets and removals, the list has one condition of each type in the order in which the types
// first came, the given list is unchanged, and only the conditions that were set differ.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 8))
		var list []corev1.PodCondition
		var order []corev1.PodConditionType
		if r.IntN(2) == 0 { // a list that another client wrote, with a type twice
			list = []corev1.PodCondition{{Type: "T1", Status: "True"}, {Type: "T0", Status: "False"},
				{Type: "T1", Status: "False"}}
			order = []corev1.PodConditionType{"T1", "T0"}
		}
		for step := range 40 {
			kind := corev1.PodConditionType(fmt.Sprint("T", r.IntN(4)))
			before := slices.Clone(list)
			var next []corev1.PodCondition
			if r.IntN(3) == 0 {
				next = Pod.Remove(list, kind)
				order = slices.DeleteFunc(order, func(t corev1.PodConditionType) bool { return t == kind })
			} else {
				c := corev1.PodCondition{Type: kind, Status: []corev1.ConditionStatus{"True", "False"}[r.IntN(2)],
					Reason: fmt.Sprint(r.IntN(2))}
				var changed bool
				next, changed = Pod.Set(list, c, at(step).Time)
				if !slices.Contains(order, kind) {
					order = append(order, kind)
				}
				if changed == slices.Equal(next, list) {
					t.Fatalf("seed %d, step %d: changed %t from %v to %v", seed, step, changed, list, next)
				}
				got, had := Pod.Find(next, kind), Pod.Find(before, kind)
				since := at(step)
				if had != nil && had.Status == c.Status {
					since = had.LastTransitionTime
				}
				c.LastTransitionTime = since
				if *got != c {
					t.Fatalf("seed %d, step %d: %+v, want %+v", seed, step, *got, c)
				}
			}
			if !reflect.DeepEqual(before, list) && len(before) > 0 {
				t.Fatalf("seed %d, step %d: what was given changed", seed, step)
			}
			list = next
		}
		// Types that were never touched may still stand twice.
		var types []corev1.PodConditionType
		for _, c := range list {
			if !slices.Contains(types, c.Type) {
				types = append(types, c.Type)
			}
		}
		if !slices.Equal(types, order) {
			t.Fatalf("seed %d: types %v, want %v", seed, types, order)
		}
	}
}

// A list that shares its memory with another is not written beyond its end.
func TestAppendingCopies(t *testing.T) {
	shared := []corev1.PodCondition{{Type: "A"}, {Type: "B"}}
	if got, _ := Pod.Set(shared[:1], corev1.PodCondition{Type: "C"}, start); got[1].Type != "C" ||
		shared[1].Type != "B" {
		t.Errorf("got %v, shared %v", got, shared)
	}
	if Pod.Find(shared, "C") != nil {
		t.Error("found what is not there")
	}
}
