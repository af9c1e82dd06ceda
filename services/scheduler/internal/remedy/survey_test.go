package remedy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/remedy"
	"keelson.dev/services/scheduler/internal/rules"
	. "keelson.dev/services/scheduler/internal/rulestest"
)

const (
	cpu    = corev1.ResourceCPU
	memory = corev1.ResourceMemory
	gpu    = corev1.ResourceName("example.com/gpu")
)

// survey surveys nodes, with Pods that run on them, for a Pod of the default profile.
func survey(p *corev1.Pod, nodes []*corev1.Node, running ...*corev1.Pod) remedy.Report {
	s := columns.New(1)
	for _, n := range nodes {
		s.SetNode(n)
	}
	for _, r := range running {
		s.SetPod(r, r.Spec.NodeName, s.Usage(r))
	}
	return remedy.Survey(s, subject(s, p))
}

// subject is a Pod of the default profile.
func subject(s *columns.State, p *corev1.Pod) remedy.Subject {
	profile := config.DefaultProfile()
	return remedy.Subject{Profile: &profile, Pod: rules.PodOf(p, s.Usage(p)), UID: p.UID}
}

// changesOf writes each change with the nodes that fit then.
func changesOf(report remedy.Report) []string {
	var out []string
	for _, c := range report.Changes {
		out = append(out, fmt.Sprintf("%s: %s", c, strings.Join(c.Fits, " ")))
	}
	return out
}

// groupsOf writes each group of nodes with what speaks against them.
func groupsOf(report remedy.Report) []string {
	var out []string
	for _, g := range report.Groups {
		var findings []string
		for _, f := range g.Findings {
			findings = append(findings, f.Rule+" "+f.Text)
		}
		out = append(out, strings.Join(g.Nodes, " ")+": "+strings.Join(findings, "; "))
	}
	return out
}

// taint is a taint of effect NoSchedule.
func taint(key, value string) func(*corev1.Node) {
	return Tainted(corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule})
}

func nodes(n ...*corev1.Node) []*corev1.Node { return n }

// A change is the smallest that makes the Pod fit, and names the nodes that can take the Pod then.
func TestChanges(t *testing.T) {
	busy := func(node, amount string) *corev1.Pod { return Pod("busy-"+node, OnNode(node), Requests(cpu, amount)) }
	for _, r := range []struct {
		name    string
		pod     *corev1.Pod
		nodes   []*corev1.Node
		running []*corev1.Pod
		want    []string
	}{
		{"a node can take it", Pod("p", Requests(cpu, "4")), nodes(Node("a"), Node("b", Cordoned)), nil, nil},
		{"no node", Pod("p"), nil, nil, nil},
		{"less of a resource, on all nodes that fit then", Pod("p", Requests(cpu, "5")),
			nodes(Node("a"), Node("b"), Node("c", Allocatable(cpu, "3"))), nil, []string{"1 less cpu: a b"}},
		{"by a thousandth", Pod("p", Requests(cpu, "4001m")), nodes(Node("a")), nil, []string{"1m less cpu: a"}},
		{"what runs counts", Pod("p", Requests(cpu, "2")), nodes(Node("a"), Node("b")),
			[]*corev1.Pod{busy("a", "3"), busy("b", "2500m")}, []string{"500m less cpu: b"}},
		{"two resources", Pod("p", Requests(cpu, "5"), Requests(memory, "5Gi")), nodes(Node("a")), nil,
			[]string{"1 less cpu and 1Gi less memory: a"}},
		{"one resource of one node or another one of another node", Pod("p", Requests(cpu, "5"), Requests(memory, "5Gi")),
			nodes(Node("a", Allocatable(cpu, "8")), Node("b", Allocatable(memory, "8Gi"))), nil,
			[]string{"1 less cpu: b", "1Gi less memory: a"}},
		{"none of a resource that no node has", Pod("p", Requests(gpu, "2")), nodes(Node("a")), nil,
			[]string{"no request of example.com/gpu, which is 2 now: a"}},
		{"fewer of one that a node has", Pod("p", Requests(gpu, "3")), nodes(Node("a", Allocatable(gpu, "1"))), nil,
			[]string{"2 less example.com/gpu: a"}},
		{"nothing for a node without room for a Pod", Pod("p"), nodes(Node("a", Allocatable(corev1.ResourcePods, "0"))),
			nil, nil},
		{"a host port", Pod("p", HostPort(80)), nodes(Node("a"), Node("b")),
			[]*corev1.Pod{Pod("x", OnNode("a"), HostPort(80)), Pod("y", OnNode("b"), HostPort(80))},
			[]string{"without host port 80/TCP: a b"}},
		{"a toleration", Pod("p"), nodes(Node("a", taint("dedicated", "db")), Node("b", taint("dedicated", "web"))), nil,
			[]string{"toleration dedicated=db:NoSchedule: a"}},
		{"one without a value", Pod("p"), nodes(Node("a", taint("broken", ""))), nil,
			[]string{"toleration broken:NoSchedule: a"}},
		{"the fewest tolerations", Pod("p"), nodes(Node("a", taint("x", ""), taint("y", "")), Node("b", taint("z", ""))), nil,
			[]string{"toleration z:NoSchedule: b"}},
		{"none for a preference", Pod("p", Requests(cpu, "5")), nodes(Node("a", Tainted(corev1.Taint{Key: "k",
			Effect: corev1.TaintEffectPreferNoSchedule}))), nil, []string{"1 less cpu: a"}},
		{"none for one that the Pod has", Pod("p", Requests(cpu, "5"), Tolerating(corev1.Toleration{Key: "k",
			Operator: corev1.TolerationOpExists})), nodes(Node("a", taint("k", "v"))), nil, []string{"1 less cpu: a"}},
		{"uncordon", Pod("p"), nodes(Node("a", Cordoned)), nil, []string{"node a uncordoned: a"}},
		{"uncordon, with the taint of it", Pod("p"), nodes(Node("a", Cordoned, taint(corev1.TaintNodeUnschedulable, ""))),
			nil, []string{"node a uncordoned: a"}},
		{"a label", Pod("p", Selecting("disk", "ssd")), nodes(Node("a"), Node("b", Cordoned)), nil,
			[]string{"label disk=ssd on node a: a"}},
		{"two parts", Pod("p", Selecting("disk", "ssd"), Requests(cpu, "5")), nodes(Node("a")), nil,
			[]string{"1 less cpu and label disk=ssd on node a: a"}},
		{"nothing for a node by its hostname", Pod("p", Selecting(corev1.LabelHostname, "other")), nodes(Node("a")), nil, nil},
		{"what asks for more of the same kind is left out", Pod("p", Requests(cpu, "5")),
			nodes(Node("a"), Node("b", Cordoned)), nil, []string{"1 less cpu: a"}},
		{"two kinds, the fewest parts first", Pod("p", Requests(cpu, "5")),
			nodes(Node("a"), Node("b", Allocatable(cpu, "8"), Cordoned)), nil,
			[]string{"1 less cpu: a", "node b uncordoned: b"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			if got := changesOf(survey(r.pod, r.nodes, r.running...)); !slices.Equal(got, r.want) {
				t.Errorf("proposes %q, want %q", got, r.want)
			}
		})
	}
}

// A node that would fit with a label is not proposed where the Pod spreads: the label may move the nodes over which the
// Pod spreads.
func TestNoLabelsWhereThePodSpreads(t *testing.T) {
	zone := func(name string, change ...func(*corev1.Node)) *corev1.Node {
		return Node(name, append(change, Labelled(corev1.LabelTopologyZone, "z"))...)
	}
	spreads := Spreading(corev1.LabelTopologyZone, 1, corev1.DoNotSchedule, "app", "web")
	for _, r := range []struct {
		pod  *corev1.Pod
		want []string
	}{
		{Pod("p", Selecting("disk", "ssd"), Labelling("app", "web")), []string{"label disk=ssd on node a: a"}},
		{Pod("p", Selecting("disk", "ssd"), Labelling("app", "web"), spreads), nil},
	} {
		s := columns.New(1)
		s.SetNode(zone("a"))
		sub := subject(s, r.pod)
		var terms []columns.TermSpec
		for _, rule := range sub.Profile.Rules {
			if rule.Asks != nil {
				terms = append(terms, rule.Asks(r.pod, nil)...)
			}
		}
		sub.Pod.Terms = s.Carry(r.pod.UID, terms)
		if got := changesOf(remedy.Survey(s, sub)); !slices.Equal(got, r.want) {
			t.Errorf("proposes %q, want %q", got, r.want)
		}
	}
}

// At most five changes are proposed.
func TestAtMostFiveChanges(t *testing.T) {
	var all []*corev1.Node
	for i := range 6 {
		resource := corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))
		n := Node(fmt.Sprint("n", i))
		for j := range 6 {
			other := corev1.ResourceName(fmt.Sprintf("example.com/r%d", j))
			n.Status.Allocatable[other] = n.Status.Allocatable[cpu]
		}
		delete(n.Status.Allocatable, resource)
		all = append(all, n)
	}
	p := Pod("p")
	for j := range 6 {
		Requests(corev1.ResourceName(fmt.Sprintf("example.com/r%d", j)), "1")(p)
	}
	for count, want := range map[int]int{5: 5, 6: 5, 4: 4} {
		if got := survey(p, all[:count]); len(got.Changes) != want {
			t.Errorf("%d nodes: %q, want %d", count, changesOf(got), want)
		}
	}
}

// Nodes are grouped by all that speaks against them, the largest group first; those that can take the Pod have nothing.
func TestGroups(t *testing.T) {
	report := survey(Pod("p", Requests(cpu, "5"), Selecting("disk", "ssd")), nodes(
		Node("a", Labelled("disk", "ssd")), Node("b"), Node("c", Cordoned), Node("d"),
		Node("e", Labelled("disk", "ssd"), Allocatable(cpu, "8"))))
	want := []string{
		"b d: NodeAffinity node(s) didn't match Pod's node affinity/selector; NodeResourcesFit Insufficient cpu",
		"a: NodeResourcesFit Insufficient cpu",
		"c: NodeAffinity node(s) didn't match Pod's node affinity/selector; NodeUnschedulable node(s) were unschedulable; " +
			"NodeResourcesFit Insufficient cpu",
		"e: ",
	}
	if got := groupsOf(report); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !report.Feasible() {
		t.Error("it is not feasible")
	}
	if report := survey(Pod("p", Requests(cpu, "5")), nodes(Node("a"))); report.Feasible() {
		t.Errorf("it is feasible: %q", groupsOf(report))
	}
	if report := survey(Pod("p"), nil); report.Feasible() {
		t.Error("it is feasible without nodes")
	}
}

// The room that is kept for the Pod is its own.
func TestRoomThatIsKeptForThePod(t *testing.T) {
	p, other := Pod("p", Requests(cpu, "3")), Pod("other", Requests(cpu, "3"))
	for _, r := range []struct {
		keeper *corev1.Pod
		want   []string
	}{{p, nil}, {other, []string{"2 less cpu: a"}}} {
		s := columns.New(1)
		s.SetNode(Node("a"))
		s.Reserve("a", columns.Reservation{UID: r.keeper.UID, Usage: s.Usage(r.keeper)})
		if got := changesOf(remedy.Survey(s, subject(s, p))); !slices.Equal(got, r.want) {
			t.Errorf("kept for %s: proposes %q, want %q", r.keeper.Name, got, r.want)
		}
	}
}
