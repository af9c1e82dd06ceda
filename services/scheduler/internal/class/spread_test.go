package class_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/groups"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/nodeaffinity"
	"keelson.dev/services/scheduler/internal/rules/podtopologyspread"
	"keelson.dev/services/scheduler/internal/rules/tainttoleration"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// spreadNode is a node of a zone, none where that is empty, and the matching Pods on it.
type spreadNode struct {
	name, zone string
	pods       int
	change     []func(*corev1.Node)
}

// spreadWorld judges Pods by PodTopologySpread alone, or with the rules about nodes before it.
type spreadWorld struct {
	state   *columns.State
	set     *class.Set
	profile rules.Profile
}

func newSpreadWorld(d podtopologyspread.Defaults, nodes []spreadNode, before ...rules.Rule) *spreadWorld {
	w := &spreadWorld{state: columns.New(1), set: class.NewSet(),
		profile: rules.Profile{Rules: append(before, podtopologyspread.Rule(d))}}
	for _, n := range nodes {
		w.state.SetNode(rulestest.Node(n.name, append(n.change, func(o *corev1.Node) {
			o.Labels["node"] = n.name
			if n.zone != "" {
				o.Labels["zone"], o.Labels[zone] = n.zone, n.zone
			}
		})...))
		for i := range n.pods {
			w.run(rulestest.Pod(fmt.Sprintf("%s-%d", n.name, i), rulestest.Labelling("foo", "bar")), n.name)
		}
	}
	return w
}

func (w *spreadWorld) run(p *corev1.Pod, node string) { w.state.SetPod(p, node, w.state.Usage(p)) }

func (w *spreadWorld) class(p *corev1.Pod, members groups.Group) *class.Class {
	book := groups.New()
	book.Set(members)
	var specs []columns.TermSpec
	for _, r := range w.profile.Rules {
		if r.Asks != nil {
			specs = append(specs, r.Asks(p, book.Selector(p))...)
		}
	}
	subject := rules.PodOf(p, w.state.Usage(p))
	subject.Terms = w.state.Carry(p.UID, specs)
	for _, t := range subject.Terms {
		if t.Selects(p) {
			subject.SelectedBy = append(subject.SelectedBy, t)
		}
	}
	return w.set.Join(&w.profile, subject)
}

// passing returns the nodes that can take the Pod, sorted.
func (w *spreadWorld) passing(c *class.Class) string {
	var names []string
	for slot := range c.Scores(w.state) {
		names = append(names, w.state.Name(slot))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// scores returns the score of each node, without the rule's weight.
func (w *spreadWorld) scores(c *class.Class) map[string]int64 {
	out := map[string]int64{}
	for slot, score := range c.Scores(w.state) {
		out[w.state.Name(slot)] = score / 2 // SCH-096: the weight
	}
	return out
}

func over(key string, skew int32, change ...func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.TopologySpreadConstraint{MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"foo": "bar"}}}
		for _, f := range change {
			f(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func soft(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }

// mine is a Pod that its own constraints select.
func mine(change ...func(*corev1.Pod)) *corev1.Pod {
	return rulestest.Pod("mypod", append([]func(*corev1.Pod){rulestest.Labelling("foo", "bar")}, change...)...)
}

var (
	four = []spreadNode{{"node1", "A", 1, nil}, {"node2", "A", 1, nil}, {"node3", "B", 1, nil}, {"node4", "B", 0, nil}}
	// conflict is the cluster of SCH-088, abxy that of SCH-107.
	conflict = []spreadNode{{"node1", "A", 2, nil}, {"node2", "A", 1, nil}, {"node3", "B", 2, nil}}
	abxy     = []spreadNode{{"a", "zone1", 2, nil}, {"b", "zone1", 1, nil}, {"x", "zone2", 0, nil},
		{"y", "zone2", 4, nil}}
	abxyz = append(slices.Clone(abxy), spreadNode{"z", "", 0, nil})
	host  = corev1.LabelHostname
)

func three(a, b, c int) []spreadNode {
	return []spreadNode{{"a", "A", a, nil}, {"b", "B", b, nil}, {"c", "C", c, nil}}
}

// The worked examples: which nodes can take the Pod.
func TestSpreadVectors(t *testing.T) {
	two := []spreadNode{{"n1", "zone1", 2, nil}, {"n2", "zone2", 0, nil}}
	notC := rulestest.Requiring(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"C"}}}})
	ssd, hdd := rulestest.Labelled("disk", "ssd"), rulestest.Labelled("disk", "hdd")
	mixed := []spreadNode{{"node1", "zone1", 0, []func(*corev1.Node){ssd}},
		{"node2", "zone1", 2, []func(*corev1.Node){hdd}}, {"node3", "zone2", 1, []func(*corev1.Node){ssd}}}
	tainted := []spreadNode{{"node1", "A", 2, nil}, {"node2", "B", 0, []func(*corev1.Node){
		rulestest.Tainted(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})}}}
	policy := func(at func(*corev1.TopologySpreadConstraint) **corev1.NodeInclusionPolicy, p corev1.NodeInclusionPolicy,
	) func(*corev1.TopologySpreadConstraint) {
		return func(c *corev1.TopologySpreadConstraint) { *at(c) = &p }
	}
	taints := func(c *corev1.TopologySpreadConstraint) **corev1.NodeInclusionPolicy { return &c.NodeTaintsPolicy }
	affinity := func(c *corev1.TopologySpreadConstraint) **corev1.NodeInclusionPolicy { return &c.NodeAffinityPolicy }
	domains := func(n int32) func(*corev1.TopologySpreadConstraint) {
		return func(c *corev1.TopologySpreadConstraint) { c.MinDomains = &n }
	}
	for name, test := range map[string]struct {
		nodes []spreadNode
		pod   *corev1.Pod
		want  string
	}{
		"SCH-081, SCH-073":                   {two, mine(over("zone", 1)), "n2"},
		"SCH-081: a skew of 2":               {two, mine(over("zone", 2)), "n2"},
		"SCH-081: a skew of 3":               {two, mine(over("zone", 3)), "n1 n2"},
		"SCH-082, SCH-080, SCH-071, SCH-074": {four, mine(over("zone", 1)), "node3 node4"},
		"SCH-083":                            {four, mine(over("zone", 2)), "node1 node2 node3 node4"},
		"SCH-084":                            {four, mine(over("node", 1)), "node4"},
		"SCH-084 by hostname":                {four, mine(over(host, 1)), "node4"},
		"SCH-085, SCH-076":                   {four, mine(over("zone", 1, soft)), "node1 node2 node3 node4"},
		"SCH-086, SCH-117": {append(four, spreadNode{"bare", "", 0, nil}), mine(over("zone", 9)),
			"node1 node2 node3 node4"},
		"SCH-087, SCH-079":       {four, mine(over("zone", 1), over("node", 1)), "node4"},
		"SCH-088":                {conflict, mine(over("zone", 1), over("node", 1)), ""},
		"SCH-089: the node soft": {conflict, mine(over("zone", 1), over("node", 1, soft)), "node3"},
		"SCH-089: the zone soft": {conflict, mine(over("zone", 1, soft), over("node", 1)), "node2"},
		"SCH-089: zones by 2":    {conflict, mine(over("zone", 2), over("node", 1)), "node2"},
		"SCH-089: nodes by 2":    {conflict, mine(over("zone", 1), over("node", 2)), "node3"},
		"SCH-097: none hard": {conflict, mine(over("zone", 1, soft), over("node", 1, soft)),
			"node1 node2 node3"},
		"SCH-101, SCH-100":           {three(2, 1, 0), mine(over("zone", 1)), "c"},
		"SCH-101, SCH-098":           {three(2, 1, 0), mine(over("zone", 1), notC), "b"},
		"SCH-078: affinity ignored":  {three(2, 1, 0), mine(over("zone", 1, policy(affinity, "Ignore")), notC), ""},
		"SCH-104, SCH-103":           {mixed, mine(over("zone", 1), rulestest.Selecting("disk", "ssd")), "node1"},
		"SCH-105: taints ignored":    {tainted, mine(over("zone", 1)), ""},
		"SCH-105, SCH-078: honoured": {tainted, mine(over("zone", 1, policy(taints, "Honor"))), "node1"},
		"SCH-078: enough domains":    {three(2, 2, 2), mine(over("zone", 2, domains(3))), "a b c"},
		"SCH-078: too few domains":   {three(2, 2, 2), mine(over("zone", 2, domains(4))), ""},
		"SCH-078: no selector": {three(9, 1, 0),
			mine(over("zone", 1, func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = nil })), "a b c"},
		"SCH-078: the empty selector": {three(2, 1, 0),
			rulestest.Pod("p", over("zone", 1,
				func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = &metav1.LabelSelector{} })), "c"},
		"SCH-118, SCH-123": {four, rulestest.Pod("mypod", over("zone", 1)), "node1 node2 node3 node4"},
		"SCH-121, SCH-122": {[]spreadNode{{"n1", "zone1", 5, nil}, {"n2", "zone2", 0, nil}},
			mine(over("zone", 1)), "n2"},
		"SCH-119: just within": {[]spreadNode{{"n1", "zone1", 4, nil}, {"n2", "zone2", 0, nil}},
			mine(over("zone", 5)), "n1 n2"},
		"SCH-119, SCH-124: just beyond": {[]spreadNode{{"n1", "zone1", 5, nil}, {"n2", "zone2", 0, nil}},
			mine(over("zone", 5)), "n2"},
		"SCH-125: by zone":       {abxy, mine(over("zone", 1)), "a b"},
		"SCH-125: by node":       {abxy, mine(over("node", 1)), "x"},
		"SCH-125: both, SCH-107": {abxy, mine(over("zone", 1), over("node", 1)), ""},
		// The empty z has no zone, so that it is no domain of the node constraint either.
		"SCH-099": {append(three(1, 1, 1), spreadNode{"z", "", 0, nil}),
			mine(over("zone", 1), over("node", 1)), "a b c"},
		"SCH-099: alone":            {append(three(1, 1, 1), spreadNode{"z", "", 0, nil}), mine(over("node", 1)), "z"},
		"SCH-116: no domain at all": {[]spreadNode{{"z", "", 0, nil}}, mine(over("zone", 1)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSpreadWorld(podtopologyspread.SystemDefaults(), test.nodes, nodeaffinity.Rule(),
				tainttoleration.Rule())
			for i := range w.profile.Rules {
				w.profile.Rules[i].Weight = 0
			}
			if got := w.passing(w.class(test.pod, groups.Group{})); got != test.want {
				t.Errorf("passes %q, want %q", got, test.want)
			}
		})
	}
}

// The worked examples of scores, of 100, rounded.
func TestSpreadScoreVectors(t *testing.T) {
	empty := []spreadNode{{"a", "A", 0, nil}, {"b", "B", 0, nil}}
	among := func(names ...string) func(*corev1.Pod) {
		return rulestest.Requiring(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "node", Operator: corev1.NodeSelectorOpIn, Values: names}}})
	}
	ignoring := func(c *corev1.TopologySpreadConstraint) {
		c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
	}
	twin := []func(*corev1.Node){rulestest.Labelled(host, "h")}
	each := func(names string, scores ...int64) map[string]int64 {
		out := map[string]int64{}
		for i, name := range strings.Fields(names) {
			out[name] = scores[i]
		}
		return out
	}
	service := groups.Group{Name: groups.Name{Kind: groups.Service, NamespacedName: types.NamespacedName{
		Namespace: "default", Name: "s"}}, Labels: map[string]string{"foo": "bar"}}
	const all = "node1 node2 node3 node4"
	for name, test := range map[string]struct {
		nodes   []spreadNode
		pod     *corev1.Pod
		members groups.Group
		want    map[string]int64
	}{
		"SCH-140, SCH-085, SCH-131, SCH-135": {four, mine(over("zone", 1, soft)), groups.Group{},
			each(all, 33, 33, 100, 100)},
		"SCH-141, SCH-134": {four, mine(over("zone", 3, soft)), groups.Group{},
			each(all, 60, 60, 100, 100)},
		"SCH-142, SCH-133, SCH-137": {four, mine(over(host, 1, soft)), groups.Group{},
			each(all, 0, 0, 0, 100)},
		"SCH-143": {four, mine(over("zone", 1, soft), over(host, 1, soft)), groups.Group{},
			each(all, 20, 20, 60, 100)},
		"SCH-144": {abxy, mine(over("zone", 1, soft)), groups.Group{},
			each("a b x y", 100, 100, 66, 66)},
		"SCH-144, SCH-129": {abxyz, mine(over("zone", 1, soft)), groups.Group{},
			each("a b x y z", 100, 100, 66, 66, 0)},
		"SCH-145, SCH-136": {abxy, mine(over(host, 1, soft)), groups.Group{},
			each("a b x y", 42, 71, 100, 0)},
		"SCH-146, SCH-090, SCH-093": {abxy, mine(), service, each("a b x y", 89, 100, 100, 63)},
		// z lacks a zone: it takes part by its host, and no zone is one more zone.
		"SCH-093: without a zone": {abxyz, mine(), service, each("a b x y z", 35, 45, 50, 10, 100)},
		"SCH-147: two of a zone, SCH-130": {abxy, mine(over("zone", 1, soft, ignoring), among("a", "b")),
			groups.Group{}, each("a b", 100, 100)},
		// The zone of the two is one, of two that there are, and they are two of four hosts: ln 3 and ln 4.
		"SCH-130: by zone and host": {abxy, mine(over("zone", 1, soft, ignoring), over(host, 1, soft, ignoring),
			among("a", "b")), groups.Group{}, each("a b", 83, 100)},
		"SCH-133: two nodes of one hostname": {[]spreadNode{{"a", "", 2, twin}, {"b", "", 0, twin}, {"c", "", 1, nil}},
			mine(over(host, 1, soft)), groups.Group{}, each("a b c", 0, 100, 33)},
		"SCH-147: two of two, SCH-132": {abxy, mine(over("zone", 1, soft, ignoring), among("a", "x")),
			groups.Group{}, each("a x", 100, 66)},
		"SCH-148":                     {empty, mine(over("zone", 1, soft)), groups.Group{}, each("a b", 100, 100)},
		"SCH-148: by 2":               {empty, mine(over("zone", 2, soft)), groups.Group{}, each("a b", 100, 100)},
		"SCH-128, SCH-127: none soft": {four, mine(over("zone", 9)), service, each(all, 0, 0, 0, 0)},
		"SCH-090: of no group":        {abxy, mine(), groups.Group{}, each("a b x y", 0, 0, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			affinity := nodeaffinity.Rule()
			affinity.Weight = 0
			w := newSpreadWorld(podtopologyspread.SystemDefaults(), test.nodes, affinity)
			if got := w.scores(w.class(test.pod, test.members)); !maps.Equal(got, test.want) {
				t.Errorf("scores are %v, want %v", got, test.want)
			}
		})
	}
}

// Defaults of the configuration: SCH-094, SCH-095.
func TestSpreadDefaults(t *testing.T) {
	defaults := podtopologyspread.Defaults{Constraints: []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule}}}
	set := groups.Group{Name: groups.Name{Kind: groups.ReplicaSet, NamespacedName: types.NamespacedName{
		Namespace: "default", Name: "rs"}}, Selector: labels.SelectorFromSet(labels.Set{"foo": "bar"})}
	owned := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs",
			Controller: new(true)}}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"a bare Pod":                   {mine(), "a b c"},
		"a Pod of a ReplicaSet":        {mine(owned), "c"},
		"with a constraint of its own": {mine(owned, over(host, 1, soft)), "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSpreadWorld(defaults, three(2, 1, 0))
			if got := w.passing(w.class(test.pod, set)); got != test.want {
				t.Errorf("passes %q, want %q", got, test.want)
			}
		})
	}
}

// Pods of other namespaces and those that are being deleted do not count, and constraints of one key and two selectors
// count apart. SCH-102, SCH-106
func TestSpreadCounts(t *testing.T) {
	w := newSpreadWorld(podtopologyspread.Defaults{}, three(1, 1, 0))
	w.run(rulestest.Pod("elsewhere", rulestest.Labelling("foo", "bar"), func(p *corev1.Pod) { p.Namespace = "other" }),
		"c")
	w.run(rulestest.Pod("ending", rulestest.Labelling("foo", "bar"),
		func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), "c")
	w.run(rulestest.Pod("another", rulestest.Labelling("foo", "other")), "c")
	w.run(rulestest.Pod("one more", rulestest.Labelling("foo", "other")), "c")
	if got := w.passing(w.class(mine(over("zone", 1)), groups.Group{})); got != "c" {
		t.Errorf("passes %q, want c", got)
	}
	byOther := func(c *corev1.TopologySpreadConstraint) {
		c.LabelSelector.MatchLabels = map[string]string{"foo": "other"}
	}
	p := mine(over("zone", 1), over("zone", 1, byOther))
	p.UID = "both"
	if got := w.passing(w.class(p, groups.Group{})); got != "" { // c has no room for either by the other
		t.Errorf("by both passes %q, want none", got)
	}
	p = mine(over("zone", 1, byOther), rulestest.Labelling("foo", "other"))
	p.UID = "other"
	if got := w.passing(w.class(p, groups.Group{})); got != "a b" {
		t.Errorf("by the other passes %q, want a b", got)
	}
}

// SCH-078: with matchLabelKeys only Pods of the same value count.
func TestSpreadMatchLabelKeys(t *testing.T) {
	w := newSpreadWorld(podtopologyspread.Defaults{}, three(3, 0, 0))
	w.run(rulestest.Pod("new", rulestest.Labelling("foo", "bar"), rulestest.Labelling("hash", "2")), "b")
	keys := func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"hash", "absent"} }
	if got := w.passing(w.class(mine(over("zone", 1, keys), rulestest.Labelling("hash", "2")),
		groups.Group{})); got != "a c" {
		t.Errorf("passes %q, want a c", got)
	}
}

// The words and which of them speak of the label. SCH-117, SCH-119
func TestSpreadReasons(t *testing.T) {
	w := newSpreadWorld(podtopologyspread.Defaults{}, append(three(2, 1, 1), spreadNode{"z", "", 0, nil}))
	got := fmt.Sprint(w.class(mine(over("zone", 1)), groups.Group{}).Refusals(w.state))
	if want := "[{node(s) didn't match pod topology spread constraints 1 false} " +
		"{node(s) didn't match pod topology spread constraints (missing required label) 1 false}]"; got != want {
		t.Errorf("refused for %s, want %s", got, want)
	}
}

// SCH-109: a constraint that cannot be read refuses the Pod as a whole, and says why.
func TestSpreadThatCannotBeRead(t *testing.T) {
	w := newSpreadWorld(podtopologyspread.Defaults{}, three(0, 0, 0))
	bad := func(c *corev1.TopologySpreadConstraint) {
		c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k",
			Operator: "Like"}}}
	}
	reasons := w.class(mine(over("zone", 1, bad)), groups.Group{}).Refusals(w.state)
	if len(reasons) != 1 || !reasons[0].Whole || reasons[0].Text !=
		`the Pod's topologySpreadConstraints cannot be read: "Like" is not a valid label selector operator` {
		t.Errorf("refused for %v", reasons)
	}
}

// SCH-120: a node that is not spread over counts as one of an empty domain.
func TestSpreadOutOfScope(t *testing.T) {
	w := newSpreadWorld(podtopologyspread.Defaults{}, []spreadNode{{"a", "A", 2, nil}, {"b", "B", 5,
		[]func(*corev1.Node){rulestest.Tainted(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})}}})
	honour := func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor) }
	if got := w.passing(w.class(mine(over("zone", 1, honour)), groups.Group{})); got != "a b" {
		t.Errorf("passes %q, want a b", got)
	}
}

// SCH-115: the constraint is judged again without some Pods of a node, and the node as it is does not change.
func TestSpreadWithoutSomePods(t *testing.T) {
	w := newSpreadWorld(podtopologyspread.Defaults{}, three(2, 1, 0))
	c := w.class(mine(over("zone", 1)), groups.Group{})
	for _, test := range []struct {
		without []types.UID
		refused bool
	}{{nil, true}, {[]types.UID{"uid-a-0"}, true}, {[]types.UID{"uid-a-0", "uid-a-1"}, false}, {nil, true}} {
		if got := c.Judge(w.state, w.state.NodeWithout(w.state.Slot("a"),
			test.without...)); len(got) > 0 != test.refused {
			t.Errorf("without %v refused for %v", test.without, got)
		}
	}
}
