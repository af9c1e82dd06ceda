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
	"keelson.dev/services/scheduler/internal/rulestest"
)

// The words of the tables.
var (
	pod         = rulestest.Pod
	node        = rulestest.Node
	requests    = rulestest.Requests
	selecting   = rulestest.Selecting
	labelled    = rulestest.Labelled
	labelling   = rulestest.Labelling
	onNode      = rulestest.OnNode
	allocatable = rulestest.Allocatable
	hostPort    = rulestest.HostPort
	tolerating  = rulestest.Tolerating
	tainted     = rulestest.Tainted
	cordoned    = rulestest.Cordoned
	spreading   = rulestest.Spreading
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
	return tainted(corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule})
}

func nodes(n ...*corev1.Node) []*corev1.Node { return n }

// A change is the smallest that makes the Pod fit, and names the nodes that can take the Pod then.
func TestChanges(t *testing.T) {
	busy := func(node, amount string) *corev1.Pod { return pod("busy-"+node, onNode(node), requests(cpu, amount)) }
	for _, r := range []struct {
		name    string
		pod     *corev1.Pod
		nodes   []*corev1.Node
		running []*corev1.Pod
		want    []string
	}{
		{"a node can take it", pod("p", requests(cpu, "4")), nodes(node("a"), node("b", cordoned)), nil, nil},
		{"no node", pod("p"), nil, nil, nil},
		{"less of a resource, on all nodes that fit then", pod("p", requests(cpu, "5")),
			nodes(node("a"), node("b"), node("c", allocatable(cpu, "3"))), nil, []string{"1 less cpu: a b"}},
		{"by a thousandth", pod("p", requests(cpu, "4001m")), nodes(node("a")), nil, []string{"1m less cpu: a"}},
		{"what runs counts", pod("p", requests(cpu, "2")), nodes(node("a"), node("b")),
			[]*corev1.Pod{busy("a", "3"), busy("b", "2500m")}, []string{"500m less cpu: b"}},
		{"two resources", pod("p", requests(cpu, "5"), requests(memory, "5Gi")), nodes(node("a")), nil,
			[]string{"1 less cpu and 1Gi less memory: a"}},
		{"one resource of one node or another one of another node",
			pod("p", requests(cpu, "5"), requests(memory, "5Gi")),
			nodes(node("a", allocatable(cpu, "8")), node("b", allocatable(memory, "8Gi"))), nil,
			[]string{"1 less cpu: b", "1Gi less memory: a"}},
		{"none of a resource that no node has", pod("p", requests(gpu, "2")), nodes(node("a")), nil,
			[]string{"no request of example.com/gpu, which is 2 now: a"}},
		{"fewer of one that a node has", pod("p", requests(gpu, "3")), nodes(node("a", allocatable(gpu, "1"))), nil,
			[]string{"2 less example.com/gpu: a"}},
		{"nothing for a node without room for a Pod", pod("p"), nodes(node("a", allocatable(corev1.ResourcePods, "0"))),
			nil, nil},
		{"a host port", pod("p", hostPort(80)), nodes(node("a"), node("b")),
			[]*corev1.Pod{pod("x", onNode("a"), hostPort(80)), pod("y", onNode("b"), hostPort(80))},
			[]string{"without host port 80/TCP: a b"}},
		{"a toleration", pod("p"),
			nodes(node("a", taint("dedicated", "db")), node("b", taint("dedicated", "web"))), nil,
			[]string{"toleration dedicated=db:NoSchedule: a"}},
		{"one without a value", pod("p"), nodes(node("a", taint("broken", ""))), nil,
			[]string{"toleration broken:NoSchedule: a"}},
		{"the fewest tolerations", pod("p"),
			nodes(node("a", taint("x", ""), taint("y", "")), node("b", taint("z", ""))), nil,
			[]string{"toleration z:NoSchedule: b"}},
		{"none for a preference", pod("p", requests(cpu, "5")), nodes(node("a", tainted(corev1.Taint{Key: "k",
			Effect: corev1.TaintEffectPreferNoSchedule}))), nil, []string{"1 less cpu: a"}},
		{"none for one that the Pod has", pod("p", requests(cpu, "5"), tolerating(corev1.Toleration{Key: "k",
			Operator: corev1.TolerationOpExists})), nodes(node("a", taint("k", "v"))), nil, []string{"1 less cpu: a"}},
		{"uncordon", pod("p"), nodes(node("a", cordoned)), nil, []string{"node a uncordoned: a"}},
		{"uncordon, with the taint of it", pod("p"),
			nodes(node("a", cordoned, taint(corev1.TaintNodeUnschedulable, ""))),
			nil, []string{"node a uncordoned: a"}},
		{"a label", pod("p", selecting("disk", "ssd")), nodes(node("a"), node("b", cordoned)), nil,
			[]string{"label disk=ssd on node a: a"}},
		{"two parts", pod("p", selecting("disk", "ssd"), requests(cpu, "5")), nodes(node("a")), nil,
			[]string{"1 less cpu and label disk=ssd on node a: a"}},
		{"nothing for a node by its hostname", pod("p", selecting(corev1.LabelHostname, "other")), nodes(node("a")),
			nil, nil},
		{"what asks for more of the same kind is left out", pod("p", requests(cpu, "5")),
			nodes(node("a"), node("b", cordoned)), nil, []string{"1 less cpu: a"}},
		{"two kinds, the fewest parts first", pod("p", requests(cpu, "5")),
			nodes(node("a"), node("b", allocatable(cpu, "8"), cordoned)), nil,
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
		return node(name, append(change, labelled(corev1.LabelTopologyZone, "z"))...)
	}
	spreads := spreading(corev1.LabelTopologyZone, 1, corev1.DoNotSchedule, "app", "web")
	for _, r := range []struct {
		pod  *corev1.Pod
		want []string
	}{
		{pod("p", selecting("disk", "ssd"), labelling("app", "web")), []string{"label disk=ssd on node a: a"}},
		{pod("p", selecting("disk", "ssd"), labelling("app", "web"), spreads), nil},
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
		n := node(fmt.Sprint("n", i))
		for j := range 6 {
			other := corev1.ResourceName(fmt.Sprintf("example.com/r%d", j))
			n.Status.Allocatable[other] = n.Status.Allocatable[cpu]
		}
		delete(n.Status.Allocatable, resource)
		all = append(all, n)
	}
	p := pod("p")
	for j := range 6 {
		requests(corev1.ResourceName(fmt.Sprintf("example.com/r%d", j)), "1")(p)
	}
	for count, want := range map[int]int{5: 5, 6: 5, 4: 4} {
		if got := survey(p, all[:count]); len(got.Changes) != want {
			t.Errorf("%d nodes: %q, want %d", count, changesOf(got), want)
		}
	}
}

// Nodes are grouped by all that speaks against them, the largest group first; those that can take the Pod have nothing.
func TestGroups(t *testing.T) {
	report := survey(pod("p", requests(cpu, "5"), selecting("disk", "ssd")), nodes(
		node("a", labelled("disk", "ssd")), node("b"), node("c", cordoned), node("d"),
		node("e", labelled("disk", "ssd"), allocatable(cpu, "8"))))
	want := []string{
		"b d: NodeAffinity node(s) didn't match Pod's node affinity/selector; NodeResourcesFit Insufficient cpu",
		"a: NodeResourcesFit Insufficient cpu",
		"c: NodeAffinity node(s) didn't match Pod's node affinity/selector; " +
			"NodeUnschedulable node(s) were unschedulable; " +
			"NodeResourcesFit Insufficient cpu",
		"e: ",
	}
	if got := groupsOf(report); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !report.Feasible() {
		t.Error("it is not feasible")
	}
	if report := survey(pod("p", requests(cpu, "5")), nodes(node("a"))); report.Feasible() {
		t.Errorf("it is feasible: %q", groupsOf(report))
	}
	if report := survey(pod("p"), nil); report.Feasible() {
		t.Error("it is feasible without nodes")
	}
}

// The room that is kept for the Pod is its own.
func TestRoomThatIsKeptForThePod(t *testing.T) {
	p, other := pod("p", requests(cpu, "3")), pod("other", requests(cpu, "3"))
	for _, r := range []struct {
		keeper *corev1.Pod
		want   []string
	}{{p, nil}, {other, []string{"2 less cpu: a"}}} {
		s := columns.New(1)
		s.SetNode(node("a"))
		s.Reserve("a", columns.Reservation{UID: r.keeper.UID, Usage: s.Usage(r.keeper)})
		if got := changesOf(remedy.Survey(s, subject(s, p))); !slices.Equal(got, r.want) {
			t.Errorf("kept for %s: proposes %q, want %q", r.keeper.Name, got, r.want)
		}
	}
}
