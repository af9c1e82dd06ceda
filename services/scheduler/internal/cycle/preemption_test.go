package cycle_test

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// preempting is a fixture whose Pods may take the room of others, and which carries their plans out.
type preempting struct {
	*fixture
	pods map[string]*corev1.Pod // with a node, by name
}

func newPreempting(t *testing.T) *preempting {
	settings := config.Default()
	settings.Profiles[0].Rules = append(settings.Profiles[0].Rules, rulestest.DomainRules()...)
	c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: 1})
	c.Lead(corev1.DefaultSchedulerName, true, start)
	return &preempting{fixture: &fixture{Cycle: c, t: t, now: start}, pods: map[string]*corev1.Pod{}}
}

// running puts Pods onto their nodes.
func (f *preempting) running(pods ...*corev1.Pod) {
	for _, p := range pods {
		f.pods[p.Name] = p
		f.SetPod(p, f.now)
	}
}

// tries decides until nothing is left and says what came of each Pod: "p:n" for a node, "p>n(a b)" for a plan with
// victims, "p:-" for nothing. Victims are evicted: they begin to leave.
func (f *preempting) tries() string {
	var out []string
	for {
		v, ok := f.Next(f.now)
		switch {
		case !ok:
			return strings.Join(out, " ")
		case v.Node != "":
			out = append(out, v.Pod.Name+":"+v.Node)
		case v.Plan == nil:
			out = append(out, v.Pod.Name+":-")
		default:
			out = append(out, v.Pod.Name+">"+v.Nominated+"("+strings.Join(names(v.Plan.Victims), " ")+")")
			f.evict(v)
		}
	}
}

func names(pods []*corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

// evict lets the API carry out a plan.
func (f *preempting) evict(v cycle.Verdict) {
	for _, victim := range v.Plan.Victims {
		f.running(leaving(victim))
	}
	f.Evicted(v.Pod.UID, nil, nil, f.now)
}

// leaving returns the Pod as the API shows it once it is evicted.
func leaving(victim *corev1.Pod) *corev1.Pod {
	p := victim.DeepCopy()
	p.DeletionTimestamp = &metav1.Time{Time: start.Add(30 * time.Second)}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: "PreemptionByScheduler"}}
	return p
}

func (f *preempting) want(tries string) {
	f.t.Helper()
	if got := f.tries(); got != tries {
		f.t.Fatalf("tried %q, want %q", got, tries)
	}
}

func (f *preempting) end(names ...string) {
	for _, name := range names {
		f.RemovePod(f.pods[name])
		delete(f.pods, name)
	}
}

func startedAt(second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.StartTime = &metav1.Time{Time: start.Add(time.Duration(second) * time.Second)}
	}
}

// budget allows that many disruptions of the Pods of a label.
func (f *preempting) budget(name, label string, allowed int32, change ...func(*policyv1.PodDisruptionBudget)) {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": label}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}}
	for _, c := range change {
		c(b)
	}
	f.SetBudget(b)
}

func on(node string, priority int32, more ...func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		onNode(node)(p)
		withPriority(priority)(p)
		for _, change := range more {
			change(p)
		}
	}
}

func app(name string) func(*corev1.Pod) { return rulestest.Labelling("app", name) }

// Which nodes and which of their Pods make room. Each row has P, of priority 100, and what becomes of it.
func TestVictims(t *testing.T) {
	label := func(n *corev1.Node) { n.Labels["disk"] = "ssd" }
	zone := func(n *corev1.Node) { n.Labels["zone"] = "z" }
	for name, test := range map[string]struct {
		given func(*preempting)
		pod   []func(*corev1.Pod)
		cpu   string
		want  string
	}{
		"SCH-034: none while a node has room": {func(f *preempting) {
			f.node("full", "1")
			f.node("free", "1")
			f.running(pod("a", "1", on("full", 0)))
		}, nil, "1", "p:free"},
		"SCH-035, SET-125, SET-135: one makes room on the node that the Pod is pinned to": {func(f *preempting) {
			f.node("n", "1")
			f.node("m", "1")
			f.running(pod("a", "1", on("n", 5)), pod("b", "1", on("m", 0)))
		}, []func(*corev1.Pod){rulestest.Requiring(rulestest.Named(corev1.NodeSelectorOpIn, "n"))}, "1", "p>n(a)"},
		"SCH-036, SCH-063: none of the same priority": {func(f *preempting) {
			f.node("n", "1")
			f.node("small", "500m") // a Pod of lower priority is somewhere
			f.running(pod("a", "1", on("n", 100)), pod("b", "500m", on("small", 0)))
		}, nil, "1", "p:-"},
		"SCH-036: one of the next lower": {func(f *preempting) {
			f.node("n", "1")
			f.running(pod("a", "1", on("n", 99)))
		}, nil, "1", "p>n(a)"},
		"SCH-028: one that preempts nobody itself": {func(f *preempting) {
			f.node("n", "1")
			f.running(pod("a", "1", on("n", 99, neverPreempting)))
		}, nil, "1", "p>n(a)"},
		"SCH-064, SAF-025: whoever has the priority": {func(f *preempting) {
			f.node("n", "1")
			f.running(pod("important", "1", on("n", 99)))
		}, nil, "1", "p>n(important)"},
		"SCH-037: not where those of higher priority leave too little": {func(f *preempting) {
			f.node("n", "2")
			f.running(pod("a", "1", on("n", 0)), pod("b", "1", on("n", 100)))
		}, nil, "2", "p:-"},
		"SCH-038, SCH-039: only those that must": {func(f *preempting) {
			f.node("n", "1")
			f.running(pod("a", "600m", on("n", 0)), pod("b", "400m", on("n", 10)))
		}, nil, "400m", "p>n(a)"},
		"SCH-038: of one priority the younger": {func(f *preempting) {
			f.node("n", "2")
			f.running(pod("a", "1", on("n", 0, startedAt(1))), pod("b", "1", on("n", 0, startedAt(2))))
		}, nil, "1", "p>n(b)"},
		"SCH-038: those stay first whose budget is used up": {func(f *preempting) {
			f.node("n", "2")
			f.running(pod("a", "1", on("n", 0, app("x"))), pod("b", "1", on("n", 10)))
			f.budget("x", "x", 0)
		}, nil, "1", "p>n(b)"},
		"a port": {func(f *preempting) {
			f.node("n", "4")
			f.running(pod("a", "1", on("n", 0)), pod("b", "1", on("n", 0, rulestest.HostPort(80))))
		}, []func(*corev1.Pod){rulestest.HostPort(80)}, "1", "p>n(b)"},
		"SCH-040: not the wrong node": {func(f *preempting) {
			f.node("n", "1")
			f.running(pod("a", "1", on("n", 0)))
			f.node("right", "1", label)
			f.running(pod("b", "1", on("right", 50)))
		}, []func(*corev1.Pod){rulestest.Selecting("disk", "ssd")}, "1", "p>right(b)"},
		"SCH-040: not a cordoned one, nor a tainted": {func(f *preempting) {
			f.node("cordoned", "1", rulestest.Cordoned)
			f.node("tainted", "1", rulestest.Tainted(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule}))
			f.running(pod("a", "1", on("cordoned", 0)), pod("b", "1", on("tainted", 0)))
		}, nil, "1", "p:-"},
		"SCH-040: not one that is too small when empty": {func(f *preempting) {
			f.node("n", "1")
			f.running(pod("a", "1", on("n", 0)))
		}, nil, "1001m", "p:-"},
		"SCH-053: a node whose budget allows": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 0, app("x"))), pod("b", "1", on("n2", 0)))
			f.budget("x", "x", 0)
		}, nil, "1", "p>n2(b)"},
		"SCH-052, SCH-053: where none does, one all the same": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 0, app("x"))), pod("b", "1", on("n2", 0, app("x"))))
			f.budget("x", "x", 0)
		}, nil, "1", "p>n1(a)"},
		"a budget that allows one": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 0, app("x"))), pod("b", "1", on("n2", 1)))
			f.budget("x", "x", 1)
		}, nil, "1", "p>n1(a)"},
		"a budget of another namespace": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 0, app("x"))), pod("b", "1", on("n2", 1)))
			f.budget("x", "x", 0, func(b *policyv1.PodDisruptionBudget) { b.Namespace = "other" })
		}, nil, "1", "p>n1(a)"},
		"a budget that knows of the disruption": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 0, app("x"))), pod("b", "1", on("n2", 1)))
			f.budget("x", "x", 0, func(b *policyv1.PodDisruptionBudget) {
				b.Status.DisruptedPods = map[string]metav1.Time{"a": {}}
			})
		}, nil, "1", "p>n1(a)"},
		"SCH-054, SCH-055: not where the Pod goes with one of them": {func(f *preempting) {
			f.node("n", "2")
			f.running(pod("v1", "1", on("n", 0, app("x"))), pod("v2", "1", on("n", 0)))
		}, []func(*corev1.Pod){rulestest.Affinity(corev1.LabelHostname, "app", "x")}, "1", "p:-"},
		"SCH-054: but where it goes with one that outranks it": {func(f *preempting) {
			f.node("n", "2")
			f.running(pod("v1", "1", on("n", 100, app("x"))), pod("v2", "1", on("n", 0)))
		}, []func(*corev1.Pod){rulestest.Affinity(corev1.LabelHostname, "app", "x")}, "1", "p>n(v2)"},
		"SCH-056, SCH-057: nobody on another node": {func(f *preempting) {
			f.node("n", "1", zone)
			f.node("m", "1", zone)
			f.running(pod("q", "1", on("m", 0, app("x"))))
			f.running(pod("full", "1", on("n", 0)))
		}, []func(*corev1.Pod){rulestest.AntiAffinity("zone", "app", "x"),
			rulestest.Selecting(corev1.LabelHostname, "n")}, "1", "p:-"},
		"one that the Pod keeps apart from": {func(f *preempting) {
			f.node("n", "2", zone)
			f.running(pod("q", "1", on("n", 0, app("x"))), pod("r", "500m", on("n", 0)))
		}, []func(*corev1.Pod){rulestest.AntiAffinity("zone", "app", "x")}, "500m", "p>n(q)"},
		"SCH-115: one that makes the spread uneven, which it does no more once it leaves": {func(f *preempting) {
			f.node("n", "2", rulestest.Labelled("zone", "a"))
			f.node("m", "0", rulestest.Labelled("zone", "b"))
			f.running(pod("q", "1", on("n", 0, app("x"))))
		}, []func(*corev1.Pod){app("x"), rulestest.Spreading("zone", 1, corev1.DoNotSchedule, "app", "x")}, "1",
			"p>n(q) p:n"},
		"SCH-058, SCH-062 (1): the lowest highest priority": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 10)), pod("b", "1", on("n2", 5)))
		}, nil, "1", "p>n2(b)"},
		"SCH-058, SCH-067: however many there are": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 10)), pod("b", "500m", on("n2", 9)), pod("c", "500m", on("n2", 9)))
		}, nil, "1", "p>n2(b c)"},
		"SCH-059, SCH-062 (2): but first the budgets": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 10)), pod("b", "1", on("n2", 5, app("x"))))
			f.budget("x", "x", 0)
		}, nil, "1", "p>n1(a)"},
		"SCH-060, SCH-062 (3): where the cheaper does not do": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 10)), pod("b", "500m", on("n2", 5)), pod("c", "500m", on("n2", 100)))
		}, nil, "1", "p>n1(a)"},
		"SCH-061, SCH-062 (4): the smaller sum": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "500m", on("n1", 10)), pod("b", "500m", on("n1", 1)), pod("c", "1", on("n2", 10)))
		}, nil, "1", "p>n2(c)"},
		"SCH-062 (5): no candidate of the same priority": {func(f *preempting) {
			f.node("n1", "1")
			f.node("small", "500m")
			f.running(pod("a", "1", on("n1", 100)), pod("b", "500m", on("small", 0)))
		}, nil, "1", "p:-"},
		"SCH-061: the smaller sum of as many": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "500m", on("n1", 10)), pod("b", "500m", on("n1", 2)), pod("c", "500m", on("n2", 10)),
				pod("d", "500m", on("n2", 1)))
		}, nil, "1", "p>n2(c d)"},
		"SCH-061: the fewer of one sum": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "500m", on("n1", 0)), pod("b", "500m", on("n1", math.MinInt32)),
				pod("c", "1", on("n2", 0)))
		}, nil, "1", "p>n2(c)"},
		"SCH-061: the start of the highest, whichever goes first": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "500m", on("n1", 0, startedAt(1), app("x"))),
				pod("b", "500m", on("n1", 5, startedAt(5))),
				pod("c", "500m", on("n2", 0, startedAt(9), app("x"))), pod("d", "500m", on("n2", 5, startedAt(2))))
			f.budget("x", "x", 0)
		}, nil, "1", "p>n1(b a)"},
		"SCH-061: negative priorities count too: two are more than one": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "500m", on("n1", -5)), pod("b", "500m", on("n1", -5)), pod("c", "1", on("n2", -5)))
		}, nil, "1", "p>n2(c)"},
		"SCH-061: the latest start": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 0, startedAt(1))), pod("b", "1", on("n2", 0, startedAt(2))))
		}, nil, "1", "p>n2(b)"},
		"SCH-061: of the highest priority alone": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "500m", on("n1", 5, startedAt(3))), pod("b", "500m", on("n1", 0, startedAt(1))),
				pod("c", "500m", on("n2", 5, startedAt(2))), pod("d", "500m", on("n2", 0, startedAt(9))))
		}, nil, "1", "p>n1(a b)"},
		"SCH-061: the first": {func(f *preempting) {
			f.node("n2", "1")
			f.node("n1", "1")
			f.running(pod("b", "1", on("n2", 0)), pod("a", "1", on("n1", 0)))
		}, nil, "1", "p>n1(a)"},
		"SAF-092, SCH-067: whatever the class of service": {func(f *preempting) {
			f.node("n1", "2", rulestest.Allocatable(corev1.ResourcePods, "1"))
			f.node("n2", "2", rulestest.Allocatable(corev1.ResourcePods, "1"))
			f.running(pod("besteffort", "0", on("n1", 1)), pod("guaranteed", "1", on("n2", 0)))
		}, nil, "1", "p>n2(guaranteed)"},
		"one that leaves already costs nothing": {func(f *preempting) {
			f.node("n1", "1")
			f.node("n2", "1")
			f.running(pod("a", "1", on("n1", 0)), leaving(pod("b", "1", on("n2", 50))))
		}, nil, "1", "p>n2()"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreempting(t)
			test.given(f)
			f.add(pod("p", test.cpu, append([]func(*corev1.Pod){withPriority(100)}, test.pod...)...))
			f.want(test.want)
		})
	}
}

func neverPreempting(p *corev1.Pod) {
	policy := corev1.PreemptNever
	p.Spec.PreemptionPolicy = &policy
}

// What users read when no node helps: SCH-040 by the words for nodes where preemption would be of no use.
func TestPreemptionMessage(t *testing.T) {
	f := newPreempting(t)
	f.node("cordoned", "4", rulestest.Cordoned)
	f.node("small", "1")
	f.node("n1", "4")
	f.node("n2", "4")
	f.running(pod("a", "4", on("n1", 100)), pod("b", "3", on("n2", 100)), pod("c", "1", on("n2", 0)))
	f.add(pod("p", "2", withPriority(100)), pod("q", "2", withPriority(99), neverPreempting),
		pod("r", "2", withPriority(0)))
	want := map[string]string{
		"p": " preemption: 0/4 nodes are available: 1 Insufficient cpu, " +
			"1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
		"q": " preemption: not eligible due to preemptionPolicy=Never.",
		"r": " preemption: 0/4 nodes are available: 2 No preemption victims found for incoming pod, " +
			"2 Preemption is not helpful for scheduling.",
	}
	for range want {
		v, _ := f.Next(f.now)
		full := "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu." + want[v.Pod.Name]
		if v.Message() != full {
			t.Errorf("pod %s: %q, want %q", v.Pod.Name, v.Message(), full)
		}
	}
}

// SCH-004: preemption can be switched off.
func TestPreemptionIsSwitchedOff(t *testing.T) {
	for plugins, want := range map[string]string{
		"{}": "p>n(a)",
		"{postFilter: {disabled: [{name: DefaultPreemption}]}}":                                        "p:-",
		"{postFilter: {disabled: [{name: '*'}]}}":                                                      "p:-",
		"{multiPoint: {disabled: [{name: DefaultPreemption}]}}":                                        "p:-",
		"{filter: {disabled: [{name: DefaultPreemption}]}}":                                            "p>n(a)",
		"{postFilter: {disabled: [{name: '*'}], enabled: [{name: DefaultPreemption}]}}":                "p>n(a)",
		"{multiPoint: {disabled: [{name: DefaultPreemption}]}, postFilter: {disabled: [{name: '*'}]}}": "p:-",
	} {
		settings, err := config.Parse([]byte("apiVersion: kubescheduler.config.k8s.io/v1\n" +
			"kind: KubeSchedulerConfiguration\nprofiles: [{plugins: " + plugins + "}]"))
		if err != nil {
			t.Fatal(err)
		}
		f := newPreempting(t)
		f.Cycle = cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff})
		f.Lead(corev1.DefaultSchedulerName, true, start)
		f.node("n", "1")
		f.running(pod("a", "1", on("n", 0)))
		f.add(pod("p", "1", withPriority(1)))
		if got := f.tries(); got != want {
			t.Errorf("%s: %s, want %s", plugins, got, want)
		}
	}
}
