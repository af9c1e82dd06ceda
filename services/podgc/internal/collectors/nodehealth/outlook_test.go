package nodehealth

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestAccount(t *testing.T) {
	quiet := outlook{heard: 7 * time.Second, grace: 50 * time.Second, zone: normal, pause: 10 * time.Second}
	with := func(change func(*outlook)) outlook {
		o := quiet
		change(&o)
		return o
	}
	silent := with(func(o *outlook) { o.Silent, o.place = true, 2 })
	unknown := []nodeOption{ready("Unknown"), condition(corev1.NodeMemoryPressure, "Unknown"),
		condition(corev1.NodeDiskPressure, "Unknown"), condition(corev1.NodePIDPressure, "Unknown"),
		tainted("unreachable:NoSchedule")}
	for _, row := range []struct {
		name string
		node *corev1.Node
		o    outlook
		want string
	}{
		{"in order", newNode("n", ready("True")), quiet,
			"waits for nothing: the node was heard 7s ago, and counts as lost after 50s of silence"},
		{"new", newNode("n", tainted("not-ready:NoSchedule")), quiet,
			"waits for the node to report for the first time"},
		{"not ready", newNode("n", ready("False"), tainted("not-ready:NoSchedule")), with(func(o *outlook) {
			o.place = 1
		}), "waits for the node to be ready: ; waits for its turn to lose its Pods: it is number 1 in its zone, of " +
			"which one has its turn every 10s"},
		{"cordoned", newNode("n", ready("True"), cordoned, tainted("unschedulable:NoSchedule")), quiet,
			"waits for somebody to let Pods go there again"},
		{"without a taint yet", newNode("n", ready("True"), cordoned), quiet, "in its next pass gives it the taints " +
			"[node.kubernetes.io/unschedulable:NoSchedule]; waits for somebody to let Pods go there again"},
		{"full", newNode("n", ready("True"), condition(corev1.NodeDiskPressure, "True"),
			tainted("disk-pressure:NoSchedule")), quiet, "waits for the end of DiskPressure, which the taint " +
			"node.kubernetes.io/disk-pressure tells of: "},
		{"silent", newNode("n", unknown...), silent, "waits for a sign of life of the node; waits for its turn to " +
			"lose its Pods: it is number 2 in its zone, of which one has its turn every 10s"},
		{"silent, as all are", newNode("n", unknown...), with(func(o *outlook) { o.Silent, o.Halted = true, true }),
			"waits for a sign of life of the node; waits for any node to be in order: while none is, no node loses " +
				"its Pods"},
		{"silent, as many are", newNode("n", unknown...), with(func(o *outlook) {
			o.Silent, o.zone, o.pause = true, partialDisruption, 0
		}), "waits for a sign of life of the node; waits for its turn to lose its Pods: its zone is in state " +
			"PartialDisruption, in which no node loses its Pods"},
		{"given up", newNode("n", append(unknown, tainted("unreachable:NoExecute"))...), silent,
			"waits for a sign of life of the node"},
	} {
		in := Input{Now: start, Node: row.node, Standing: row.o.Standing}
		if got := account(in, Decide(in), row.o).Explanation().Summary; got != row.want {
			t.Errorf("%s: got %q\nwant %q", row.name, got, row.want)
		}
	}
}

// Asking about a node takes neither a place in the line nor a turn.
func TestOutlookChangesNothing(t *testing.T) {
	b := newBench(t, newNode("n", ready("True"), condition(corev1.NodeMemoryPressure, "False")),
		newNode("other", ready("True")))
	for range 3 {
		e, known := b.explain(t.Context(), "", "n")
		if !known || !strings.HasPrefix(e.Summary, "in its next pass says of the Node that it is silent") {
			t.Fatalf("%q, %t", e.Summary, known)
		}
	}
	m := b.fleet.nodes["n"]
	if m.waits || m.evict || len(b.writes) > 0 {
		t.Errorf("it waits: %t, had its turn: %t, wrote %v", m.waits, m.evict, b.writes)
	}
	if _, known := b.explain(t.Context(), "", "gone"); known {
		t.Error("a node that is gone is known")
	}
}
