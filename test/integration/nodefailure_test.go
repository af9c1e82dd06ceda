package integration

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podgc "keelson.dev/services/podgc/inproc"
	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

// grace is how long a node may be silent. It is long enough for nodes that are in order, since some meshes share this
// process and may be late together.
const grace = 15 * time.Second

// impatient gives a node up after the grace period.
func impatient() podgc.NodeHealth {
	settings := podgc.DefaultNodeHealth()
	settings.MonitorGrace, settings.EvictionRate = grace, 10
	return settings
}

func TestNodeFailure(t *testing.T) {
	t.Parallel()
	scenario.NodeFailure(t, inprocess.New(t, inprocess.Options{Nodes: 2, Guarded: true, NodeHealth: impatient()}))
}

func TestNodeRemoved(t *testing.T) {
	t.Parallel()
	scenario.NodeRemoved(t, inprocess.New(t, inprocess.Options{Nodes: 2, Guarded: true, NodeHealth: impatient()}))
}

// When all nodes fall silent, the cut is elsewhere: no Pod moves, and all are there when the nodes are back.
func TestAllNodesFail(t *testing.T) {
	t.Parallel()
	m := inprocess.New(t, inprocess.Options{Nodes: 3, Guarded: true, NodeHealth: impatient()})
	w := scenario.In(t, m)
	w.Deploy(6, scenario.HelloV1)
	uids := func() string {
		text := ""
		for _, p := range w.Pods("") {
			text += fmt.Sprint(p.Name, " ", p.UID, " ", p.DeletionTimestamp != nil, "\n")
		}
		return text
	}
	before := uids()
	nodes := func(want corev1.ConditionStatus) scenario.Answer {
		list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		for i := range list.Items {
			for _, taint := range list.Items[i].Spec.Taints {
				if taint.Effect == corev1.TaintEffectNoExecute {
					t.Errorf("%s has the taint %s", list.Items[i].Name, taint.ToString())
				}
			}
			if got := list.Items[i].Status.Conditions[0].Status; got != want {
				return scenario.Sawf("%s is %s", list.Items[i].Name, got)
			}
		}
		return ""
	}
	for _, name := range m.Nodes() {
		m.StopNode(t, name)
	}
	w.Await("all nodes to be lost", func() scenario.Answer { return nodes(corev1.ConditionUnknown) })
	w.Await("what follows to have happened", func() scenario.Answer {
		for _, p := range w.Pods("") {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status != corev1.ConditionFalse {
					return scenario.Saw(p.Name + " is ready")
				}
			}
		}
		return ""
	})
	since := time.Now()
	w.Await("twice the grace period to pass", func() scenario.Answer {
		if time.Since(since) < 2*grace {
			return scenario.Saw(string(nodes(corev1.ConditionUnknown)) + " not yet")
		}
		return ""
	})
	for _, name := range m.Nodes() {
		m.StartNode(t, name)
	}
	w.Await("all nodes to be back", func() scenario.Answer { return nodes(corev1.ConditionTrue) })
	w.AwaitAvailable("web", 6)
	if after := uids(); after != before {
		t.Errorf("Pods before:\n%safter:\n%s", before, after)
	}
}
