package class_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rulestest"
)

const zone = corev1.LabelTopologyZone

// domainFixture is a State with Pods by rulestest.DomainRules.
type domainFixture struct {
	*columns.State
	set     *class.Set
	profile rules.Profile
}

func newDomainFixture(more ...rules.Rule) *domainFixture {
	return &domainFixture{State: columns.New(1), set: class.NewSet(),
		profile: rules.Profile{Name: "domains", Rules: append(rulestest.DomainRules(), more...)}}
}

func (f *domainFixture) carry(p *corev1.Pod) []*columns.Term {
	var specs []columns.TermSpec
	for _, r := range f.profile.Rules {
		if r.Terms != nil {
			specs = append(specs, r.Terms(p)...)
		}
	}
	return f.Carry(p.UID, specs)
}

func (f *domainFixture) put(p *corev1.Pod, node string) {
	f.carry(p)
	f.SetPod(p, node, f.Usage(p))
}

func (f *domainFixture) remove(uid types.UID) {
	f.RemovePod(uid)
	f.Carry(uid, nil)
}

func (f *domainFixture) join(p *corev1.Pod) *class.Class {
	subject := rules.PodOf(p, f.Usage(p))
	subject.Terms = f.carry(p)
	subject.SelectedBy = f.TermsThatSelect(p, subject.Terms)
	return f.set.Join(&f.profile, subject)
}

func randomPod(g *rand.Rand, name string) *corev1.Pod {
	apps, keys := []string{"web", "db"}, []string{zone, corev1.LabelHostname}
	key, app := keys[g.IntN(2)], apps[g.IntN(2)]
	p := rulestest.Pod(name, rulestest.Labelling("app", apps[g.IntN(2)]))
	switch g.IntN(5) {
	case 0:
		rulestest.Spreading(key, 1, corev1.DoNotSchedule, "app", app)(p)
		rulestest.Spreading(zone, 1, corev1.ScheduleAnyway, "app", app)(p)
	case 1:
		rulestest.AntiAffinity(key, "app", app)(p)
	case 2:
		rulestest.Affinity(key, "app", app)(p)
	}
	return p
}

// A node without some of its Pods is judged by its domains as if they were gone; the class goes on judging it as it is.
func TestJudgesDomainsOfHypotheticalNodes(t *testing.T) {
	for seed := range uint64(30) {
		g := rand.New(rand.NewPCG(seed, 6))
		f := newDomainFixture()
		for i := range 6 {
			f.SetNode(rulestest.Node(fmt.Sprintf("n%d", i), rulestest.Labelled(zone, fmt.Sprint(g.IntN(3)))))
		}
		on := map[types.UID]string{}
		pods := map[types.UID]*corev1.Pod{}
		for i := range 20 {
			p := randomPod(g, fmt.Sprint(i))
			on[p.UID], pods[p.UID] = fmt.Sprintf("n%d", g.IntN(6)), p
			f.put(p, on[p.UID])
		}
		for i := range 20 {
			c := f.join(randomPod(g, fmt.Sprintf("new-%d", i)))
			node := fmt.Sprintf("n%d", g.IntN(6))
			var victims []types.UID
			for uid := range on {
				if on[uid] == node && g.IntN(2) == 0 {
					victims = append(victims, uid)
				}
			}
			asItIs := c.Refusals(f.State)
			would := c.Judge(f.State, f.NodeWithout(f.Slot(node), victims...))
			for _, uid := range victims {
				f.RemovePod(uid) // it still carries its terms
			}
			if is := c.Judge(f.State, f.Node(f.Slot(node))); !reflect.DeepEqual(is, would) {
				t.Fatalf("seed %d: without %v node %s would be refused for %v, and is for %v", seed, victims, node,
					would, is)
			}
			for _, uid := range victims {
				f.put(pods[uid], node)
			}
			if again := c.Refusals(f.State); !reflect.DeepEqual(again, asItIs) {
				t.Fatalf("seed %d: nodes are refused for %v, before %v", seed, again, asItIs)
			}
		}
	}
}

// A Pod that comes to a domain costs no judgement of the nodes in it but the one where it is.
func TestCostOfADomainFollowsChange(t *testing.T) {
	judged := 0
	f := newDomainFixture(rules.Rule{Name: "Counting", Filter: func(rules.Pod) *rules.Filter {
		return &rules.Filter{Judge: rules.ByRoom(func(columns.Node) rules.Reasons { judged++; return 0 })}
	}})
	const nodes = 300
	for i := range nodes {
		f.SetNode(rulestest.Node(fmt.Sprintf("n%d", i), rulestest.Labelled(zone, fmt.Sprint(i%3))))
	}
	p := rulestest.Pod("p", rulestest.Labelling("app", "web"),
		rulestest.Spreading(zone, 1, corev1.DoNotSchedule, "app", "web"),
		rulestest.Spreading(corev1.LabelHostname, 1, corev1.DoNotSchedule, "app", "web"))
	c := f.join(p)
	if n := c.Feasible(f.State); n != nodes {
		t.Fatalf("%d nodes are feasible", n)
	}
	for i := range 2 * nodes { // each node gets its second when all have the first
		choice, ok := c.Best(f.State)
		if !ok {
			t.Fatalf("Pod %d has no node", i)
		}
		judged = 0
		another := p.DeepCopy()
		another.UID = types.UID(fmt.Sprint(i))
		f.put(another, f.Name(choice.Slot))
		if c.Best(f.State); judged != 1 {
			t.Fatalf("Pod %d judged %d nodes, want 1", i, judged)
		}
	}
	for i := range nodes {
		if n := f.Node(f.Slot(fmt.Sprintf("n%d", i))).Room().Used[columns.Pods]; n != 2 {
			t.Fatalf("node %d has %d Pods, want 2", i, n)
		}
	}
}

// Where domains come and go for ever, what is kept of them does not grow.
func TestBucketsOfDomainsThatAreGoneAreForgotten(t *testing.T) {
	f := newDomainFixture()
	c := f.join(rulestest.Pod("p", rulestest.Labelling("app", "web"), rulestest.AntiAffinity(
		corev1.LabelHostname, "app", "web"), rulestest.Spreading(corev1.LabelHostname, 9, corev1.ScheduleAnyway, "app",
		"web")))
	f.SetNode(rulestest.Node("n"))
	f.SetNode(rulestest.Node("m"))
	most := 0
	for i := range 2000 { // each count of n is a cell of its own
		f.put(rulestest.Pod(fmt.Sprint(i), rulestest.Labelling("app", "web")), "n")
		if n := c.Feasible(f.State); n != 1 {
			t.Fatalf("%d nodes are feasible, want 1", n)
		}
		most = max(most, c.Buckets())
	}
	if most > 300 {
		t.Errorf("there were %d buckets of 2 nodes", most)
	}
}

// A class lasts as long as the terms that make it, and gives their counts back.
func TestClassesOfDroppedTermsAreForgotten(t *testing.T) {
	f := newDomainFixture()
	f.SetNode(rulestest.Node("n"))
	p := rulestest.Pod("p", rulestest.Labelling("app", "web"), rulestest.AntiAffinity(zone, "app", "web"))
	c := f.join(p)
	if !c.LooksAtDomains() || c.Feasible(f.State) != 1 {
		t.Error("the class does not look at domains")
	}
	f.set.Leave(c)
	if f.set.ForgetOutdated(); f.set.Len() != 1 {
		t.Error("a class was forgotten whose terms are carried")
	}
	plain := f.join(rulestest.Pod("plain"))
	if plain.LooksAtDomains() || plain.DomainsChanged() {
		t.Error("a class without terms looks at domains")
	}
	f.Carry(p.UID, nil)
	if f.set.ForgetOutdated(); f.set.Len() != 1 {
		t.Errorf("%d classes are left, want the one without terms", f.set.Len())
	}
	c = f.join(p)
	f.Carry(p.UID, nil)
	if f.set.ForgetOutdated(); f.set.Len() != 2 {
		t.Error("a class was forgotten that has a Pod")
	}
	if f.set.Leave(c); f.set.Len() != 1 {
		t.Error("a class is kept that no Pod can be of any more")
	}
}

// DomainsChanged reports each change of a count once, and those before the first question too.
func TestDomainsChanged(t *testing.T) {
	f := newDomainFixture()
	f.SetNode(rulestest.Node("n", rulestest.Labelled(zone, "a")))
	c := f.join(rulestest.Pod("p", rulestest.AntiAffinity(zone, "app", "web")))
	if !c.DomainsChanged() {
		t.Error("what was never looked at has not changed")
	}
	c.Feasible(f.State)
	for step, test := range []struct {
		event   func()
		changed bool
	}{
		{func() {}, true}, // counted since
		{func() {}, false},
		{func() { f.put(rulestest.Pod("db", rulestest.Labelling("app", "db")), "n") }, false},
		{func() { f.put(rulestest.Pod("web", rulestest.Labelling("app", "web")), "n") }, true},
		{func() { f.put(rulestest.Pod("web", rulestest.Labelling("app", "web")), "n") }, false},
		{func() { f.remove("uid-web") }, true},
		{func() { f.SetNode(rulestest.Node("n", rulestest.Labelled(zone, "b"))) }, true},
		{func() { f.SetNode(rulestest.Node("n", rulestest.Labelled(zone, "b"), rulestest.Cordoned)) }, false},
		{func() { f.RemoveNode("n") }, true},
	} {
		if test.event(); c.DomainsChanged() != test.changed {
			t.Errorf("step %d: changed is %v", step, !test.changed)
		}
	}
}
