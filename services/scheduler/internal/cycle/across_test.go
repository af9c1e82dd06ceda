package cycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
)

// newAcross is a preempting fixture whose Pods may take the room of Pods on other nodes.
func newAcross(t *testing.T) *preempting {
	settings, err := config.Parse([]byte(`{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration,
profiles: [{pluginConfig: [{name: DefaultPreemption, args: {crossNode: true}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: 1})
	c.Lead(corev1.DefaultSchedulerName, true, start)
	return &preempting{fixture: &fixture{Cycle: c, t: t, now: start}, pods: map[string]*corev1.Pod{}}
}

func inZone(zone string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func labelled(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

// apartFrom keeps the Pod out of the zones of an app.
func apartFrom(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelTopologyZone,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}}
	}
}

// evenly spreads the Pod over zones with its like.
func evenly(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
		TopologyKey:       corev1.LabelTopologyZone,
		WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
			"app": "x"}}}}
}

// twoZones has a cordoned node with q in zone a, where n has room, and a node in zone b that is full of what must stay.
func twoZones(f *preempting) {
	f.node("n", "4", inZone("a"))
	f.node("other", "4", inZone("a"), cordoned)
	f.node("far", "4", inZone("b"))
	f.running(pod("stays", "4", onNode("far"), withPriority(100)), pod("q", "4", onNode("other"), labelled("x")))
}

// SCH-056, SCH-057: Q on another node of the zone stays, unless the profile says otherwise; once it is gone, P has its
// node.
func TestVictimOnAnotherNode(t *testing.T) {
	for name, test := range map[string]struct {
		fixture func(*testing.T) *preempting
		want    string
	}{"as in the field": {newPreempting, "p:-"}, "across nodes": {newAcross, "p>n(q)"}} {
		t.Run(name, func(t *testing.T) {
			f := test.fixture(t)
			twoZones(f)
			f.add(pod("p", "3", withPriority(10), apartFrom("x")))
			f.want(test.want)
			f.wait(time.Minute)
			f.want("")
			f.RemovePod(f.pods["q"])
			f.want("p:n")
		})
	}
}

// inOneRegion has q1 and q2 keep P from n, as there is only r in the other zone. Without all three n can take it, and
// neither of the two could stay; but r can, and then one of them.
func inOneRegion(f *preempting) {
	f.RemovePod(f.pods["q"])
	for name, zone := range map[string]string{"n": "a", "other": "a", "far": "b"} {
		f.node(name, "4", inZone(zone), func(n *corev1.Node) { n.Labels[corev1.LabelTopologyRegion] = "r" })
	}
	kept := func(p *corev1.Pod) { p.Labels["kept"] = "yes" }
	f.running(pod("full", "4", onNode("other"), withPriority(100)),
		pod("q1", "0", onNode("other"), labelled("x"), withPriority(3), kept),
		pod("q2", "0", onNode("other"), labelled("x"), withPriority(2)),
		pod("r", "0", onNode("far"), labelled("x"), withPriority(1)))
}

func evenlyByRegion(p *corev1.Pod) {
	more := p.Spec.TopologySpreadConstraints[0]
	more.TopologyKey = corev1.LabelTopologyRegion
	p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, more)
}

// SCH-061: one that stays in the end counts for no budget.
func TestBudgetOfOneThatStays(t *testing.T) {
	f := newAcross(t)
	twoZones(f)
	inOneRegion(f)
	f.SetBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"kept": "yes"}}}})
	f.add(pod("p", "3", labelled("x"), evenly, evenlyByRegion, withPriority(10)))
	v, _ := f.Next(f.now)
	if v.Plan == nil || len(v.Plan.Victims) != 1 || v.Plan.Victims[0].Name != "q2" || v.Plan.Violations != 0 {
		t.Errorf("the plan is %+v, want that q2 goes, against no budget", v.Plan)
	}
}

// Which victims must go: the rows are about P of priority 10 in TestVictimOnAnotherNode's place.
func TestVictimsOnOtherNodes(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(*preempting)
		p       []func(*corev1.Pod)
		want    string
	}{
		"an equal stays": {func(f *preempting) {
			f.running(pod("q", "4", onNode("other"), labelled("x"), withPriority(10)))
		}, []func(*corev1.Pod){apartFrom("x")}, "p:-"},
		"one below goes": {func(f *preempting) {
			f.running(pod("q", "4", onNode("other"), labelled("x"), withPriority(9)))
		}, []func(*corev1.Pod){apartFrom("x")}, "p>n(q)"},
		"one that keeps P away itself": {func(f *preempting) {
			f.running(pod("q", "4", onNode("other"), apartFrom("p")))
		}, []func(*corev1.Pod){labelled("p")}, "p>n(q)"},
		"with one on the node": {func(f *preempting) {
			f.running(pod("here", "3", onNode("n")), pod("free", "1", onNode("n")))
		}, []func(*corev1.Pod){apartFrom("x")}, "p>n(here q)"},
		"a bystander stays": {func(f *preempting) {
			f.RemovePod(f.pods["q"])
			f.running(pod("q", "2", onNode("other"), labelled("x")), pod("by", "2", onNode("other"), labelled("y")))
		}, []func(*corev1.Pod){apartFrom("x")}, "p>n(q)"},
		"as many as the skew asks for": {func(f *preempting) {
			f.RemovePod(f.pods["q"])
			f.running(pod("stays", "4", onNode("far"), labelled("x"), withPriority(100)),
				pod("q1", "1", onNode("other"), labelled("x"), withPriority(1)),
				pod("q2", "1", onNode("other"), labelled("x"), withPriority(2)),
				pod("q3", "1", onNode("other"), labelled("x"), withPriority(3)))
		}, []func(*corev1.Pod){labelled("x"), evenly}, "p>n(q2 q1) p:n"},
		"SCH-038: one that stays lets another stay": {inOneRegion,
			[]func(*corev1.Pod){labelled("x"), evenly, evenlyByRegion}, "p>n(q2) p:n"},
		"SCH-052: one that no budget keeps": {func(f *preempting) {
			f.node("third", "4", inZone("c"), cordoned)
			f.running(pod("r", "4", onNode("third"), labelled("x"), withPriority(5), func(p *corev1.Pod) {
				p.Labels["kept"] = "no"
			}))
			f.node("fourth", "4", inZone("c"))
			f.SetBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
				Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kept",
						Operator: metav1.LabelSelectorOpDoesNotExist}}}}})
		}, []func(*corev1.Pod){apartFrom("x")}, "p>fourth(r)"},
		"SCH-054: none where P must be with one": {func(*preempting) {}, []func(*corev1.Pod){apartFrom("x"),
			func(p *corev1.Pod) {
				p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: p.Spec.
						Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution}
			}}, "p:-"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newAcross(t)
			twoZones(f)
			test.happens(f)
			f.add(pod("p", "3", append(test.p, withPriority(10))...))
			f.want(test.want)
		})
	}
}

// What a victim leaves its successor does not take, so that nothing is evicted for ever; others are not held up, and
// those of higher priority come first.
func TestSuccessorOfAVictimElsewhere(t *testing.T) {
	f := newAcross(t)
	twoZones(f)
	f.add(pod("p", "2", withPriority(10), apartFrom("x")))
	f.want("p>n(q)")
	f.node("near", "500m", inZone("a"))
	f.add(pod("successor", "500m", labelled("x")), pod("plain", "1"))
	f.want("successor:- plain:n")
	if _, c, _ := f.Unschedulable("uid-successor"); c.Message != "0/4 nodes are available: 1 Insufficient cpu, "+
		"1 node(s) are in a domain for which a Pod of no lower priority waits, 1 node(s) didn't satisfy existing pods "+
		"anti-affinity rules, 1 node(s) were unschedulable." {
		t.Errorf("says %q", c.Message)
	}
	f.wait(time.Minute)
	f.want("")
	f.RemovePod(f.pods["q"])
	f.want("p:n successor:-")
	f.node("free", "4", inZone("c"))
	f.wait(time.Minute)
	f.want("successor:free")
}

// A Pod of higher priority does not wait for one of lower priority; the latter waits, and evicts no Pod in vain.
func TestUrgentPodAmongVictimsElsewhere(t *testing.T) {
	f := newAcross(t)
	twoZones(f)
	f.add(pod("p", "2", withPriority(10), apartFrom("x")))
	f.want("p>n(q)")
	f.add(pod("urgent", "1", labelled("x"), withPriority(11)))
	f.want("urgent:n p:-")
	if node := f.Nominated("uid-p"); node != "" {
		t.Errorf("p is nominated for %s still", node)
	}
	f.RemovePod(f.pods["q"])
	f.wait(time.Minute)
	f.want("")
}

// A successor of the scheduler goes on from what the API shows: it evicts no Pod again, and gives the room to no other
// Pod.
func TestRestartAmongVictimsElsewhere(t *testing.T) {
	f := newAcross(t)
	twoZones(f)
	gone := leaving(f.pods["q"])
	f.running(gone)
	f.add(pod("p", "2", withPriority(10), apartFrom("x"), func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }),
		pod("successor", "1", labelled("x")))
	f.want("p:- successor:-")
	f.RemovePod(gone)
	f.wait(time.Minute)
	f.want("p:n successor:-")
}

// Where there are too many Pods to look at, those nodes are tried whose domains have the fewest of them, then the first
// by name, whichever came first; and the explanation counts the others.
func TestTooManyPodsElsewhere(t *testing.T) {
	zones := []string{"c", "b", "a", "d"}
	// In zone d there is one Pod, which costs most; in the others are two. To try n-d is 2 times 1, others 3 times 2.
	for name, test := range map[string]struct {
		work int
		want string
		left string // how many are not tried
	}{
		"enough for all":   {20, "n-a", ""},
		"for all but one":  {19, "n-a", "1"},
		"for two":          {8, "n-a", "2"},
		"for one":          {7, "n-d", "3"},
		"for less than it": {1, "n-d", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				slices.Reverse(zones)
				f := newAcross(t)
				f.BoundAcross(test.work)
				for _, zone := range zones {
					f.node("n-"+zone, "4", inZone(zone))
					f.node("o-"+zone, "4", inZone(zone), cordoned)
					if zone == "d" {
						f.running(pod("d0", "1", on("o-d", 5, labelled("x"))))
						continue
					}
					f.running(pod(zone+"0", "1", on("o-"+zone, 0, labelled("x"))),
						pod(zone+"1", "1", on("o-"+zone, 0, labelled("x"))))
				}
				f.add(pod("p", "3", withPriority(10), apartFrom("x")))
				facts := f.preemptionFacts("p")
				v, _ := f.Next(f.now)
				if v.Plan == nil || v.Nominated != test.want {
					t.Fatalf("is nominated for %q, want %s: %s", v.Nominated, test.want, v.Message())
				}
				said := strings.Contains(v.Message(), " preemption across nodes: "+test.left+
					" node(s) were not tried, as too many pods count in their domains.")
				told := strings.Contains(facts, "across nodes, cheapest on "+test.want+", without ") &&
					strings.Contains(facts, test.left+" of 8: not tried across nodes, as too many Pods count "+
						"in their domains")
				if want := test.left != ""; said != want || told != want {
					t.Errorf("says %q, explains %q", v.Message(), facts)
				}
			}
		})
	}
}
