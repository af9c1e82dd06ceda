package cycle_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/extender"
	"keelson.dev/services/scheduler/internal/queue"
)

const gpu = "example.com/gpu"

// withExtender returns the settings with an extender for Pods that ask for a gpu, which has these verbs too.
func withExtender(t *testing.T, verbs string) config.Config {
	t.Helper()
	settings, err := config.Parse([]byte(`{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration,
extenders: [{urlPrefix: "http://x", filterVerb: f, prioritizeVerb: p, weight: 1, ` + verbs + `
managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return settings
}

// newOf is a preempting fixture of other settings than the usual.
func newOf(t *testing.T, settings config.Config) *preempting {
	c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: 1,
		Extenders: settings.Extenders})
	c.Lead(corev1.DefaultSchedulerName, true, start)
	return &preempting{fixture: &fixture{Cycle: c, t: t, now: start}, pods: map[string]*corev1.Pod{}}
}

// newExtended has an extender for Pods that ask for a gpu, with a say on whose room they take, and these.
func newExtended(t *testing.T, more ...schedulerv1.Extender) *preempting {
	settings := withExtender(t, "preemptVerb: p,")
	settings.Extenders = append(settings.Extenders, more...)
	return newOf(t, settings)
}

func withGPU(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1") }

// asks decides until nothing is left and returns the questions; the tries of others are compared.
func (f *preempting) asks(others string) (questions []*extender.Question) {
	f.t.Helper()
	var tries []string
	for v, ok := f.Next(f.now); ok; v, ok = f.Next(f.now) {
		if v.Question != nil {
			questions = append(questions, v.Question)
			continue
		}
		tries = append(tries, v.Pod.Name+":"+v.Node)
	}
	if got := strings.Join(tries, " "); got != others {
		f.t.Fatalf("tried %q, want %q", got, others)
	}
	return questions
}

// question is asks where there must be one, about these nodes.
func (f *preempting) question(pod, nodes string) *extender.Question {
	f.t.Helper()
	questions := f.asks("")
	if len(questions) != 1 || questions[0].Pod.Name != pod {
		f.t.Fatalf("asks %+v, want one question about %s", questions, pod)
	}
	slices.Sort(questions[0].Nodes)
	if got := strings.Join(questions[0].Nodes, " "); got != nodes {
		f.t.Fatalf("asks about %q, want %q", got, nodes)
	}
	return questions[0]
}

// answered returns the node that follows from an answer, or the message; "none" when nothing follows now.
func (f *preempting) answered(q *extender.Question, a extender.Answer) string {
	v, ok := f.Answered(q, a, f.now)
	switch {
	case !ok:
		return "none"
	case v.Question != nil:
		return "asks"
	case v.Plan != nil:
		f.evict(v)
		return v.Nominated + "(" + strings.Join(names(v.Plan.Victims), " ") + ")"
	case v.Node != "":
		return v.Node
	default:
		return v.Message()
	}
}

func left(names ...string) extender.Answer { return extender.Answer{Left: names} }

// An extender is asked about one Pod at a time, the most urgent first; Pods that it does not manage pass by.
func TestOneQuestionAtATime(t *testing.T) {
	f := newExtended(t)
	f.node("n", "4")
	f.add(pod("first", "1", withGPU), pod("plain", "1"), pod("second", "1", withGPU),
		pod("urgent", "1", withGPU, withPriority(5)))
	q := f.asks("plain:n")
	if len(q) != 1 || q[0].Pod.Name != "urgent" {
		t.Fatalf("asks %v", q)
	}
	if d := f.Depths()[queue.Held]; d.Pods != 2 {
		t.Errorf("%d Pods are held, want 2", d.Pods)
	}
	for i, name := range []string{"urgent", "first", "second"} {
		if got := f.answered(q[0], left("n")); got != "n" {
			t.Fatalf("%s: %s", name, got)
		}
		if q = f.asks(""); i < 2 && (len(q) != 1 || q[0].Pod.Name == name) {
			t.Fatalf("after %s asks %v", name, q)
		}
	}
	if len(q) > 0 || f.Depths()[queue.Held].Pods > 0 {
		t.Errorf("asks on: %v", q)
	}
}

// Scores of extenders count beside those of rules.
func TestScoresOfExtenders(t *testing.T) {
	f := newExtended(t)
	f.node("large", "8")
	f.node("small", "2")
	f.add(pod("p", "1", withGPU), pod("q", "1", withGPU))
	if got := f.answered(f.question("p", "large small"), left("large", "small")); got != "large" {
		t.Errorf("without scores: %s", got)
	}
	answer := left("large", "small")
	answer.Scores = map[string]int64{"small": 100}
	if got := f.answered(f.question("q", "large small"), answer); got != "small" {
		t.Errorf("with a score: %s", got)
	}
}

// What happens while an extender is asked is not overlooked.
func TestMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(*preempting)
		want    string
		next    string // what comes after
	}{
		"nothing":            {func(*preempting) {}, "b", ""},
		"the node is taken":  {func(f *preempting) { f.running(pod("x", "4", onNode("b"))) }, "none", "asks a"},
		"the node is gone":   {func(f *preempting) { f.RemoveNode("b") }, "none", "asks a"},
		"the Pod is deleted": {func(f *preempting) { f.RemovePod(pod("p", "3", withGPU)) }, "none", ""},
		"the Pod is bound":   {func(f *preempting) { f.add(pod("p", "3", withGPU, onNode("a"))) }, "none", ""},
		"the Pod is gated": {func(f *preempting) {
			f.add(pod("p", "3", withGPU,
				func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }))
		}, "none", ""},
		"the Pod is changed": {func(f *preempting) {
			f.add(pod("p", "3", withGPU,
				func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "a"} }))
		}, "none", "asks a"},
		"the Pod asks for less": {func(f *preempting) { f.add(pod("p", "1", withGPU)) }, "none", "asks a b"},
		"the Pod is made anew": {func(f *preempting) {
			f.RemovePod(pod("p", "3", withGPU))
			f.add(pod("p", "3", withGPU))
		}, "none", "asks a b"},
		"the Pod is shown again": {func(f *preempting) { f.add(pod("p", "3", withGPU)) }, "b", ""},
		"the lead is lost": {func(f *preempting) { f.Lead(corev1.DefaultSchedulerName, false, f.now) }, "none",
			""},
		"the lead is lost and won": {func(f *preempting) {
			f.Lead(corev1.DefaultSchedulerName, false, f.now)
			f.Lead(corev1.DefaultSchedulerName, true, f.now)
		}, "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newExtended(t)
			f.node("a", "4")
			f.node("b", "4")
			f.add(pod("p", "3", withGPU))
			q := f.question("p", "a b")
			test.happens(f)
			if got := f.answered(q, left("b")); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			next := ""
			for _, q := range f.asks("") {
				next += "asks " + strings.Join(q.Nodes, " ")
			}
			if next != test.next {
				t.Errorf("then %q, want %q", next, test.next)
			}
		})
	}
}

// A Pod whose extender gives no answer says so, and is asked about again after a delay; so is one that it refuses.
func TestDelayAfterAnAnswer(t *testing.T) {
	f := newExtended(t)
	f.node("n", "4")
	f.add(pod("p", "1", withGPU))
	v, ok := f.Answered(f.question("p", "n"), extender.Answer{Err: errors.New("extender x failed")}, f.now)
	if c := v.Condition(); !ok || c.Reason != corev1.PodReasonSchedulerError || c.Message != "extender x failed" {
		t.Errorf("condition is %+v", c)
	}
	if _, c, ok := f.Unschedulable("uid-p"); !ok || c.Reason != corev1.PodReasonSchedulerError {
		t.Errorf("condition is %+v, %v", c, ok)
	}
	f.wait(999 * time.Millisecond)
	f.asks("")
	f.wait(time.Millisecond)
	got := f.answered(f.question("p", "n"), extender.Answer{Failed: map[string]string{"n": "node(s) had no licence"}})
	if want := "0/1 nodes are available: 1 node(s) had no licence. preemption: 0/1 nodes are available: 1 " +
		"No preemption victims found for incoming pod."; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	f.wait(1999 * time.Millisecond)
	f.asks("")
	f.wait(time.Millisecond)
	if got := f.answered(f.question("p", "n"), left("n")); got != "n" {
		t.Errorf("at last: %s", got)
	}
}

// Reasons of extenders fill no status: of many it lists the eight of most nodes.
func TestManyReasonsOfExtenders(t *testing.T) {
	f := newExtended(t)
	answer := extender.Answer{Failed: map[string]string{}}
	for i := range 20 {
		f.node(fmt.Sprintf("n%02d", i), "4")
		answer.Failed[fmt.Sprintf("n%02d", i)] = fmt.Sprintf("reason %02d", i/2)
	}
	f.add(pod("p", "1", withGPU))
	q := f.asks("")[0]
	if got := f.answered(q, answer); strings.Count(got, "2 reason") != 8 || !strings.Contains(got,
		"4 node(s) were refused by extenders for other reasons") {
		t.Errorf("message %q", got)
	}
}

// Where no node can take the Pod no extender is asked.
func TestNothingToAsk(t *testing.T) {
	f := newExtended(t)
	f.node("n", "4")
	f.add(pod("p", "5", withGPU))
	f.asks("p:")
	f.node("n", "5")
	f.wait(time.Second)
	f.question("p", "n")
}

// The node that a Pod is nominated for comes first, if its extender lets it pass.
func TestNominatedNodeAmongTheAnswers(t *testing.T) {
	for _, test := range []struct{ left, want string }{{"old new", "old"}, {"new", "new"}} {
		f := newExtended(t)
		f.node("old", "2")
		f.add(pod("p", "2", withGPU, withPriority(1), func(p *corev1.Pod) { p.Status.NominatedNodeName = "old" }))
		f.node("new", "8")
		if got := f.answered(f.question("p", "new old"), left(strings.Fields(test.left)...)); got != test.want {
			t.Errorf("left %q: %s, want %s", test.left, got, test.want)
		}
	}
}

// A Pod comes before what is kept for Pods of lower priority on a node that its extender lets pass, and on no other.
func TestOutranksAmongTheAnswers(t *testing.T) {
	for _, test := range []struct{ left, want string }{{"a b", "a"}, {"b", "b"}} {
		f := newExtended(t)
		f.node("a", "2")
		f.node("b", "2")
		for _, node := range []string{"a", "b"} {
			f.Lead(corev1.DefaultSchedulerName, false, f.now)
			f.add(pod("kept-on-"+node, "2", func(p *corev1.Pod) { p.Status.NominatedNodeName = node }))
		}
		f.add(pod("p", "2", withGPU, withPriority(1)))
		f.Lead(corev1.DefaultSchedulerName, true, f.now)
		v, _ := f.Next(f.now)
		if v.Question == nil {
			t.Fatal("asks nothing")
		}
		if got := f.answered(v.Question, left(strings.Fields(test.left)...)); got != test.want {
			t.Errorf("left %q: %s, want %s", test.left, got, test.want)
		}
	}
}

// An extender that lets all pass and likes none changes nothing: random Pods get the nodes that they get without it.
func TestExtenderThatChangesNothing(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		with, without := newExtended(t), newPlain(t)
		for i := range 8 {
			cpu, zone := fmt.Sprint(2+r.IntN(6)), fmt.Sprint(r.IntN(3))
			for _, f := range []*preempting{with, without} {
				f.node(fmt.Sprintf("n%d", i), cpu, func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone })
			}
		}
		for i := range 25 {
			p := pod(fmt.Sprintf("p%d", i), fmt.Sprintf("%d00m", 5+r.IntN(20)), withGPU, withPriority(int32(r.IntN(3))))
			if r.IntN(2) == 0 {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
					TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway}}
			}
			with.add(p)
			without.add(p)
			want, _ := without.Next(without.now)
			v, _ := with.Next(with.now)
			if v.Question != nil && v.Question.Plans == nil {
				v, _ = with.Answered(v.Question, left(v.Question.Nodes...), with.now)
			}
			if q := v.Question; q != nil {
				answer := extender.Answer{Plans: map[string][]types.UID{}}
				for name, victims := range q.Plans {
					for _, victim := range victims.Pods {
						answer.Plans[name] = append(answer.Plans[name], victim.UID)
					}
				}
				v, _ = with.Answered(q, answer, with.now)
			}
			if v.Node != want.Node || v.Score != want.Score || v.Nominated != want.Nominated ||
				v.Message() != want.Message() {
				t.Fatalf("seed %d, Pod %d: %s %d %s %s, want %s %d %s %s", seed, i, v.Node, v.Score, v.Nominated,
					v.Message(),
					want.Node, want.Score, want.Nominated, want.Message())
			}
			if want.Plan != nil {
				if a, b := names(v.Plan.Victims), names(want.Plan.Victims); !slices.Equal(a, b) {
					t.Fatalf("seed %d, Pod %d: victims %q, want %q", seed, i, a, b)
				}
				with.evict(v)
				without.evict(want)
			}
		}
	}
}

// newPlain is newExtended without the extender: no rule looks at a gpu.
func newPlain(t *testing.T) *preempting {
	settings, err := config.Parse([]byte(`{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration,
profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/gpu]}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: 1})
	c.Lead(corev1.DefaultSchedulerName, true, start)
	return &preempting{fixture: &fixture{Cycle: c, t: t, now: start}, pods: map[string]*corev1.Pod{}}
}

// The cheapest of the plans that extenders leave is taken, with the victims that they chose.
func TestPlansOfExtenders(t *testing.T) {
	for name, test := range map[string]struct {
		plans map[string][]types.UID
		want  string
	}{
		"all":          {map[string][]types.UID{"a": {"uid-a1"}, "b": {"uid-b1"}}, "a(a1)"},
		"one":          {map[string][]types.UID{"b": {"uid-b1"}}, "b(b1)"},
		"another Pod":  {map[string][]types.UID{"a": {"uid-a2"}}, "a(a2)"},
		"more of them": {map[string][]types.UID{"a": {"uid-a1", "uid-a2"}}, "a(a2 a1)"},
		"none": {nil, "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: " +
			"2 node(s) were refused by an extender for preemption."},
		"too few": {map[string][]types.UID{"a": {}}, "0/2 nodes are available: 2 Insufficient cpu. " +
			"preemption: what extenders chose makes no room by now."},
		"one that must stay": {map[string][]types.UID{"a": {"uid-a3"}}, "an extender chose a victim on node a that " +
			"cannot be one: pod default/a3 has priority 10, which must be below 10"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newExtended(t)
			f.node("a", "4")
			f.node("b", "4")
			f.running(pod("a1", "1", onNode("a"), withPriority(1)), pod("a2", "1", onNode("a"), withPriority(2)),
				pod("a3", "2", onNode("a"), withPriority(10)), pod("b1", "4", onNode("b"), withPriority(3)))
			f.add(pod("p", "1", withGPU, withPriority(10)))
			q := f.question("p", "")
			if len(q.Plans) != 2 || q.Plans["a"].Pods[0].Name != "a1" || q.Plans["b"].Pods[0].Name != "b1" {
				t.Fatalf("asks about %+v", q.Plans)
			}
			if got := f.answered(q, extender.Answer{Plans: test.plans}); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
