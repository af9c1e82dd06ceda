package columns

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// What is gone of other nodes changes the count of the node's domain, the least count of all and their sum.
func TestTrialAcross(t *testing.T) {
	s := New(1)
	for name, zone := range map[string]string{"n": "a", "beside": "a", "far": "b"} {
		s.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}})
	}
	term := s.Carry("carrier", []TermSpec{{Purpose: "test", TopologyKey: "zone",
		Selectors: []labels.Selector{labels.Everything()}}})[0]
	for uid, node := range map[types.UID]string{"1": "n", "2": "beside", "3": "beside", "4": "far", "5": "far"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}}
		s.SetPod(p, node, s.Usage(p))
	}
	d := s.Domains(Count{Term: term})
	var trial Trial
	trial.Start(s, s.Slot("n"))
	trial.Across()
	for _, step := range []struct {
		node               string
		pods, least, total int
	}{{"beside", 2, 2, 4}, {"far", 2, 1, 3}, {"n", 1, 1, 2}, {"far", 1, 0, 1}, {"beside", 0, 0, 0}} {
		for _, o := range s.Occupants(s.Slot(step.node)) {
			if !trial.lacks(o.Pod.UID) {
				trial.Remove(&o)
				break
			}
		}
		if got := trial.Node().Domain(d); got.Pods != step.pods || got.Least != step.least || got.Total != step.total {
			t.Errorf("without another of %s: %+v, want %+v", step.node, got, step)
		}
	}
	for _, node := range []string{"far", "n", "beside"} {
		for _, o := range s.Occupants(s.Slot(node)) {
			trial.Restore(&o)
		}
	}
	if got, want := trial.Node().Domain(d), s.Node(s.Slot("n")).Domain(d); got != want {
		t.Errorf("with all back: %+v, want %+v", got, want)
	}
}

func (t *Trial) lacks(uid types.UID) bool {
	for _, gone := range t.gone.pods {
		if gone == uid {
			return true
		}
	}
	for _, b := range t.gone.beside {
		if b.pod == uid {
			return true
		}
	}
	return false
}
