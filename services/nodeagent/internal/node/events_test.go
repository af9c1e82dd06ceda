package node

import (
	"context"
	"slices"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"keelson.dev/kit/events"
)

func texts(all []events.Event) []string {
	var out []string
	for _, e := range all {
		out = append(out, e.Type+" "+e.Reason+": "+e.Message)
	}
	return out
}

func TestChanges(t *testing.T) {
	const (
		yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
		memory, disk     = corev1.NodeMemoryPressure, corev1.NodeDiskPressure
		pids, ready      = corev1.NodePIDPressure, corev1.NodeReady
	)
	type conditions map[corev1.NodeConditionType]corev1.ConditionStatus
	status := func(of conditions, boot string) *corev1.NodeStatus {
		s := &corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: boot}}
		for kind, is := range of {
			s.Conditions = append(s.Conditions, corev1.NodeCondition{Type: kind, Status: is})
		}
		return s
	}
	is := func(reason string) string { return "Normal " + reason + ": Node n status is now: " + reason }
	for _, row := range []struct {
		name          string
		before, after conditions
		booted, boots string
		want          []string
	}{
		{"a new node", nil, conditions{memory: no, disk: no, pids: no, ready: no}, "", "a",
			[]string{is("NodeHasSufficientMemory"), is("NodeHasNoDiskPressure"), is("NodeHasSufficientPID")}},
		{"a new node that is short of all", nil, conditions{memory: yes, disk: yes, pids: yes, ready: yes}, "", "a",
			[]string{is("NodeHasInsufficientMemory"), is("NodeHasDiskPressure"), is("NodeHasInsufficientPID")}},
		{"nothing new", conditions{memory: no, ready: yes}, conditions{memory: no, ready: yes}, "a", "a", nil},
		{"ready", conditions{ready: no}, conditions{ready: yes}, "a", "a", []string{is("NodeReady")}},
		{"no longer", conditions{ready: yes}, conditions{ready: no}, "a", "a", []string{is("NodeNotReady")}},
		{"heard of again", conditions{memory: unknown, ready: unknown}, conditions{memory: no, ready: yes}, "a", "a",
			[]string{is("NodeHasSufficientMemory"), is("NodeReady")}},
		{"taken for silent", conditions{ready: no}, conditions{ready: unknown}, "a", "a", []string{is("NodeNotReady")}},
		{"rebooted", conditions{ready: yes}, conditions{ready: yes}, "a", "b",
			[]string{"Warning Rebooted: Node n has been rebooted, boot id: b"}},
		{"a condition of others", conditions{"Other": no}, conditions{"Other": yes}, "a", "a", nil},
		{"one that has gone", conditions{memory: no}, nil, "a", "a", nil},
	} {
		got := texts(changes("n", status(row.before, row.booted), status(row.after, row.boots)))
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestCordoned(t *testing.T) {
	node := func(uid string, closed bool) *corev1.Node {
		n := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: closed}}
		n.UID = "u"
		if uid != "" {
			n.UID = "w"
		}
		return n
	}
	for _, row := range []struct {
		name          string
		before, after *corev1.Node
		want          []string
	}{
		{"not known before", nil, node("", true), nil},
		{"another of the name", node("w", false), node("", true), nil},
		{"as before", node("", true), node("", true), nil},
		{"closed", node("", false), node("", true),
			[]string{"Normal NodeNotSchedulable: Node n status is now: NodeNotSchedulable"}},
		{"open", node("", true), node("", false),
			[]string{"Normal NodeSchedulable: Node n status is now: NodeSchedulable"}},
	} {
		if got := texts(cordoned("n", row.before, row.after)); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// Changes of the node are reported once the API has them, and once.
func TestEvents(t *testing.T) {
	client := fake.NewClientset()
	problem := "down"
	var told []events.Event
	n := New(Config{Client: client, Log: zap.NewNop(), Facts: facts(),
		Health: func(context.Context) Health { return Health{RuntimeProblem: problem} },
		Record: func(e events.Event) { told = append(told, e) }})
	expect := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, e := range told {
			got = append(got, e.Reason)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		told = nil
	}
	if err := n.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("registered", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID")
	problem = ""
	for range 2 {
		if err := n.report(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	expect("ready", "NodeReady")
	stored, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored.Spec.Unschedulable = true
	n.Observe(stored)
	n.Observe(stored)
	expect("cordoned", "NodeNotSchedulable")
	stored = stored.DeepCopy()
	stored.Status.NodeInfo.BootID = "another"
	if stored, err = client.CoreV1().Nodes().UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.Observe(stored)
	for range 2 {
		if err := n.report(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	expect("rebooted", "Rebooted")
}
