package cycle_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/extender"
)

// events sends a Cycle any event at any time: what the API shows, what became of the decisions, and who leads.
type events struct {
	*preempting
	gen   *generator
	all   map[types.UID]*corev1.Pod // the newest version of each Pod
	nodes map[string]*corev1.Node
	// The decisions without an outcome yet.
	given     []cycle.Verdict
	plans     []cycle.Verdict
	questions []*extender.Question
	leads     bool
	// decided is what was decided so far, line by line.
	decided strings.Builder
}

func newEvents(t *testing.T, seed uint64) *events {
	gen := &generator{Rand: rand.New(rand.NewPCG(seed, 11)), nodes: 4}
	settings := withExtender(t, pick(gen, "", "preemptVerb: p,"))
	settings.Profiles[0].PreemptsAcross = gen.chance(30)
	e := &events{preempting: newOf(t, settings), gen: gen, all: map[types.UID]*corev1.Pod{},
		nodes: map[string]*corev1.Node{}, leads: true}
	for range gen.nodes {
		e.changeNode()
	}
	e.changeGroup()
	e.SetClass(waitClass())
	for i := range 2 {
		e.SetClaim(waiting(fmt.Sprintf("c%d", i)))
	}
	return e
}

// take removes one of the list and returns it.
func take[T any](e *events, list *[]T) (one T, ok bool) {
	if len(*list) == 0 {
		return one, false
	}
	i := e.gen.IntN(len(*list))
	one = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return one, true
}

// anyPod returns one of the Pods; nil where there is none.
func (e *events) anyPod() *corev1.Pod {
	if len(e.all) == 0 {
		return nil
	}
	return e.all[pick(e.gen, slices.Sorted(maps.Keys(e.all))...)]
}

func (e *events) show(p *corev1.Pod) {
	e.all[p.UID] = p
	e.SetPod(p, e.now)
}

func (e *events) gone(p *corev1.Pod) {
	delete(e.all, p.UID)
	e.RemovePod(p)
}

// priorities are those of the groups.
var priorities = map[string]int32{"g": 1, "h": 2}

func (e *events) newPod() {
	p := e.gen.pod()
	if len(e.all) > 12 {
		return
	}
	p.Spec.Volumes = nil
	if e.gen.chance(15) {
		claiming(pick(e.gen, "c0", "c1"))(p)
	}
	p.Spec.SchedulingGates = nil
	if e.gen.chance(10) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}}
	}
	if e.gen.chance(70) { // most could be anywhere
		p.Spec.NodeSelector, p.Spec.Affinity, p.Spec.TopologySpreadConstraints = nil, nil, nil
	}
	if e.gen.chance(60) {
		group := pick(e.gen, "g", "h")
		inGroup(group)(p)
		withPriority(priorities[group])(p)
	}
	if e.gen.chance(10) {
		p.Status.NominatedNodeName = e.anyNode()
	}
	if e.gen.chance(10) && p.Spec.SchedulingGroup == nil {
		p.Spec.NodeName = e.anyNode()
	}
	p.Status.StartTime = &metav1.Time{Time: e.now}
	e.show(p)
}

func (e *events) anyNode() string { return fmt.Sprintf("n%d", e.gen.IntN(e.gen.nodes)) }

// changePod shows another version of a Pod.
func (e *events) changePod() {
	old := e.anyPod()
	if old == nil {
		return
	}
	p := old.DeepCopy()
	switch e.gen.IntN(6) {
	case 0:
		p.Spec.SchedulingGates = nil
	case 1:
		p.Status.NominatedNodeName = pick(e.gen, "", e.anyNode())
	case 2:
		p.Labels = map[string]string{"app": pick(e.gen, "a", "b")}
	case 3:
		p.DeletionTimestamp = &metav1.Time{Time: e.now}
	case 4:
		p.Status.Phase = corev1.PodFailed
	case 5:
		e.gone(old)
		return
	}
	if p.DeletionTimestamp != nil && p.Spec.NodeName == "" || p.Status.Phase == corev1.PodFailed {
		delete(e.all, p.UID)
		e.SetPod(p, e.now)
		return
	}
	e.show(p)
}

func (e *events) changeNode() {
	name := e.anyNode()
	if e.nodes[name] != nil && e.gen.chance(20) {
		delete(e.nodes, name)
		e.RemoveNode(name)
		return
	}
	n := e.gen.node(name)
	n.Spec.Taints, n.Spec.Unschedulable = nil, e.gen.chance(10)
	e.nodes[name] = n
	e.SetNode(n)
}

func (e *events) changeGroup() {
	name := pick(e.gen, "g", "h")
	g := gangOf(name, int32(1+e.gen.IntN(4)), ofPriority(priorities[name]))
	if e.gen.chance(10) {
		e.RemovePodGroup(g)
		return
	}
	for _, change := range []func(*schedulingv1beta1.PodGroup){together, basic, inOne("zone")} {
		if e.gen.chance(30) {
			change(g)
		}
	}
	e.SetPodGroup(g, e.now)
}

// keep notes a decision whose outcome comes later.
func (e *events) keep(v cycle.Verdict, ok bool) {
	if ok {
		fmt.Fprintf(&e.decided, "%s: %q, nominated %q, asks %v, evicts %v: %s\n", v.Pod.Name, v.Node, v.Nominated,
			v.Question != nil, v.Plan != nil, v.Message())
	}
	switch {
	case !ok:
	case v.Question != nil:
		e.questions = append(e.questions, v.Question)
	case v.Plan != nil:
		e.plans = append(e.plans, v)
	case v.Node != "":
		e.given = append(e.given, v)
	}
}

// outcome reports to the Cycle what became of a Pod that it placed.
func (e *events) outcome() {
	v, ok := take(e, &e.given)
	if !ok {
		return
	}
	p := e.all[v.Pod.UID]
	switch {
	case p == nil:
	case e.gen.chance(20):
		e.Failed(p.UID, e.now)
	case len(v.Steps) > 0:
		e.Await(p.UID, e.now)
		if e.gen.chance(50) {
			for _, step := range v.Steps {
				e.bound(waiting(step.Claim.Name), v.Node)
			}
		}
	default:
		e.bind(p, v.Node)
	}
}

// bind shows the Pod on its node.
func (e *events) bind(p *corev1.Pod, node string) {
	p = p.DeepCopy()
	p.Spec.NodeName, p.Status.NominatedNodeName = node, ""
	e.show(p)
}

// settle takes what became of the waits for claims.
func (e *events) settle() {
	s, ok := e.NextSettled(e.now)
	if !ok || s.Err != nil {
		return
	}
	if p := e.all[s.Pod.UID]; p != nil {
		e.bind(p, s.Node)
	}
}

// carryOut evicts the victims of a plan, some of them, or none as the request failed.
func (e *events) carryOut() {
	v, ok := take(e, &e.plans)
	if !ok {
		return
	}
	var spared []types.UID
	var err error
	for _, victim := range v.Plan.Victims {
		p := e.all[victim.UID]
		switch {
		case e.gen.chance(20):
			spared, err = append(spared, victim.UID), errors.New("refused")
		case p == nil:
		case p.Spec.NodeName == "":
			e.gone(p)
		default:
			e.show(leaving(p))
		}
	}
	e.Evicted(v.Pod.UID, spared, err, e.now)
}

// answer is given to one of the questions.
func (e *events) answer() {
	q, ok := take(e, &e.questions)
	if !ok {
		return
	}
	var a extender.Answer
	switch {
	case e.gen.chance(20):
		a.Err = errors.New("it hangs")
	case q.Plans != nil:
		a.Plans = map[string][]types.UID{}
		for node, victims := range q.Plans {
			for _, p := range victims.Pods {
				a.Plans[node] = append(a.Plans[node], p.UID)
			}
		}
	default:
		for _, node := range q.Nodes {
			if e.gen.chance(70) {
				a.Left = append(a.Left, node)
			}
		}
	}
	e.keep(e.Answered(q, a, e.now))
}

// end has the Pods that leave be gone.
func (e *events) end() {
	for _, uid := range slices.Sorted(maps.Keys(e.all)) {
		if p := e.all[uid]; p.DeletionTimestamp != nil && e.gen.chance(50) {
			e.gone(p)
		}
	}
}

// happen has one thing happen, most often a decision.
func (e *events) happen() {
	switch n := e.gen.IntN(100); {
	case n < 15:
		e.newPod()
	case n < 20:
		e.changePod()
	case n < 25:
		e.changeNode()
	case n < 29:
		e.changeGroup()
	case n < 31:
		e.leads = !e.leads
		e.Lead(corev1.DefaultSchedulerName, e.leads, e.now)
	case n < 40:
		e.carryOut()
	case n < 49:
		e.answer()
	case n < 57:
		e.outcome()
	case n < 61:
		e.settle()
	case n < 66:
		e.end()
	case n < 75:
		e.wait(time.Duration(e.gen.IntN(20)) * time.Second)
	default:
		e.keep(e.Next(e.now))
	}
}

// runEvents has 120 things happen and returns what was decided.
func runEvents(t *testing.T, seed uint64) string {
	e := newEvents(t, seed)
	for range 120 {
		e.happen()
		e.Check()
		if wrong := e.Miscounted(); wrong != nil {
			t.Fatalf("seed %d: %v", seed, wrong)
		}
	}
	return e.decided.String()
}

// Whatever happens, in whatever order, nothing that is known of a Pod contradicts its phase, groups count their Pods,
// and no Pod that can be tried is forgotten. The same events and the same seed bring the same decisions. Only a program
// that is built with -tags invariants sees the first.
func TestRandomEvents(t *testing.T) {
	runs, first := longer(t, "KEELSON_EVENTS", 1000), uint64(longer(t, "KEELSON_SEED", 0))
	for seed := first; seed < first+uint64(runs); seed++ {
		if a, b := runEvents(t, seed), runEvents(t, seed); a != b {
			t.Fatalf("seed %d: once\n%s\nand once\n%s", seed, a, b)
		}
	}
}
