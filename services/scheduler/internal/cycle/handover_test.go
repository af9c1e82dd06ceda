package cycle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// rivalry is an API server with two schedulers of one profile, each of which sees its events late.
type rivalry struct {
	t      *testing.T
	r      *rand.Rand
	nodes  map[string]*corev1.Node
	pods   map[types.UID]*corev1.Pod
	events []func(*cycle.Cycle, time.Time)
	bound  map[types.UID]bool // that were ever bound

	replicas [2]*preempting
	seen     [2]int // of events
	leader   int
	inFlight []binding
	late     []binding // given up by the sender, and still to arrive
	foreign  [2]int    // of events: the last of a binding of which the replica knows by its event alone
	made     int
	now      time.Time
	met      map[string]int // how often the API server met what is lost, or late
}

// binding is a request under way, of a replica.
type binding struct {
	by   int
	pod  *corev1.Pod
	node string
	// sees is whether the replica had seen all bindings when it decided, of so many that there were.
	sees bool
	of   int
}

func newRivalry(t *testing.T, seed uint64) *rivalry {
	w := &rivalry{t: t, r: rand.New(rand.NewPCG(seed, 3)), nodes: map[string]*corev1.Node{},
		pods: map[types.UID]*corev1.Pod{}, bound: map[types.UID]bool{}, now: start,
		met: map[string]int{}}
	for i := range w.replicas {
		w.replicas[i] = newPreempting(t)
		w.replicas[i].Lead(corev1.DefaultSchedulerName, i == 0, w.now)
	}
	for i := range 3 {
		w.setNode(i)
	}
	return w
}

func (w *rivalry) tell(event func(*cycle.Cycle, time.Time)) { w.events = append(w.events, event) }

func (w *rivalry) setNode(i int) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
			corev1.ResourcePods: resource.MustParse("10")}}}
	w.nodes[n.Name] = n
	w.tell(func(c *cycle.Cycle, _ time.Time) { c.SetNode(n) })
}

func (w *rivalry) setPod(p *corev1.Pod) {
	w.pods[p.UID] = p
	w.tell(func(c *cycle.Cycle, now time.Time) { c.SetPod(p, now) })
}

func (w *rivalry) removePod(p *corev1.Pod) {
	delete(w.pods, p.UID)
	w.tell(func(c *cycle.Cycle, _ time.Time) { c.RemovePod(p) })
}

// used returns what the Pods take of a node.
func (w *rivalry) used(node string) (cpu int64) {
	for _, p := range w.pods {
		if p.Spec.NodeName == node {
			cpu += cpuOf(p)
		}
	}
	return cpu
}

// deliver shows a replica its next events.
func (w *rivalry) deliver(i, most int) {
	for ; most > 0 && w.seen[i] < len(w.events); most-- {
		w.events[w.seen[i]](w.replicas[i].Cycle, w.now)
		w.seen[i]++
	}
}

// decide lets a replica decide once.
func (w *rivalry) decide(i int) bool {
	v, ok := w.replicas[i].Next(w.now)
	switch {
	case !ok:
		return false
	case v.Node != "":
		w.inFlight = append(w.inFlight, binding{by: i, pod: v.Pod, node: v.Node, sees: w.seen[i] >= w.foreign[i],
			of: w.foreign[i]})
	case v.Plan != nil && len(v.Plan.Victims) > 0:
		for _, victim := range v.Plan.Victims {
			if now := w.pods[victim.UID]; now != nil {
				w.removePod(now)
			}
		}
		w.replicas[i].Evicted(v.Pod.UID, nil, nil, w.now)
	}
	return true
}

// answer ends the oldest request. A process that no longer leads sends no request. One may be lost before it comes, or
// come when it has been given up. The answer may be lost too: then it is looked up, and where that fails, given up.
func (w *rivalry) answer() {
	b := w.inFlight[0]
	w.inFlight = w.inFlight[1:]
	how := w.r.IntN(12)
	switch {
	case b.by != w.leader:
	case how == 0:
		w.met["lost"]++
	case how == 1:
		w.late = append(w.late, b)
	case !w.arrive(b):
	case how == 2:
		w.met["done and given up"]++
		w.foreign[b.by] = len(w.events)
	default: // as the answer says, or a look at the Pod
		return
	}
	w.replicas[b.by].Failed(b.pod.UID, w.now)
}

// arrive has the API server take a request, as it does where the Pod is there without a node, and the node has room.
// The room of a node is no more than a guard: who had seen all bindings asks for no more.
func (w *rivalry) arrive(b binding) bool {
	p, n := w.pods[b.pod.UID], w.nodes[b.node]
	if p == nil || p.Spec.NodeName != "" || n == nil {
		return false
	}
	if free := n.Status.Allocatable.Cpu().MilliValue() - w.used(b.node); free < cpuOf(p) {
		if w.met["refused"]++; b.sees && b.of == w.foreign[b.by] {
			w.t.Errorf("replica %d wants %d of %s for pod %s, where %d are left, and knew it", b.by, cpuOf(p), b.node,
				p.Name, free)
		}
		return false
	}
	if w.bound[p.UID] {
		w.t.Errorf("pod %s is bound twice", p.Name)
	}
	w.bound[p.UID] = true
	p = p.DeepCopy()
	p.Spec.NodeName = b.node
	w.setPod(p)
	w.foreign[1-b.by] = len(w.events)
	return true
}

// arriveLate has the oldest of the requests arrive that were given up. No process awaits an answer.
func (w *rivalry) arriveLate() {
	b := w.late[0]
	w.late = w.late[1:]
	if b.sees = false; w.arrive(b) {
		w.met["late"]++
		w.foreign[b.by] = len(w.events)
	}
}

func cpuOf(p *corev1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() }

// step does one thing that happens.
func (w *rivalry) step() {
	switch w.r.IntN(10) {
	case 0, 1:
		w.made++
		w.setPod(pod(fmt.Sprintf("p%d", w.made), fmt.Sprint(1+w.r.IntN(3)), withPriority(int32(w.r.IntN(2)))))
	case 2:
		if uid, ok := anyKey(&generator{Rand: w.r}, w.pods); ok {
			w.removePod(w.pods[uid])
		}
	case 3:
		if uid, ok := anyKey(&generator{Rand: w.r}, w.pods); ok {
			p := w.pods[uid].DeepCopy()
			rulestest.Labelling("changed", fmt.Sprint(len(w.events)))(p)
			w.setPod(p)
		}
	case 4:
		w.changeNode(w.r.IntN(3))
	case 5, 6:
		for range min(len(w.inFlight), 1+w.r.IntN(3)) {
			w.answer()
		}
	case 7:
		for range 1 + w.r.IntN(6) {
			w.decide(w.leader)
		}
	default:
		w.deliver(w.r.IntN(2), 1+w.r.IntN(4))
	}
	if w.r.IntN(25) == 0 {
		w.handOver()
	}
	if len(w.late) > 0 && w.r.IntN(8) == 0 {
		w.arriveLate()
	}
	w.now = w.now.Add(time.Duration(w.r.IntN(1500)) * time.Millisecond)
}

// changeNode takes a node away, or brings it back.
func (w *rivalry) changeNode(i int) {
	name := fmt.Sprintf("n%d", i)
	if w.nodes[name] == nil {
		w.setNode(i)
		return
	}
	delete(w.nodes, name)
	w.tell(func(c *cycle.Cycle, _ time.Time) { c.RemoveNode(name) })
	for _, p := range w.pods {
		if p.Spec.NodeName == name {
			w.removePod(p)
		}
	}
}

// handOver makes the other replica the leader. The first one may learn of it late, as one that was paused.
func (w *rivalry) handOver() {
	before := w.leader
	w.leader = 1 - before
	if w.r.IntN(2) == 0 {
		for range 2 {
			w.decide(before) // it has not noticed; what it decides is not sent
		}
	}
	w.replicas[before].Lead(corev1.DefaultSchedulerName, false, w.now)
	w.replicas[w.leader].Lead(corev1.DefaultSchedulerName, true, w.now)
}

// settle lets everything come to rest.
func (w *rivalry) settle() {
	for range 50 {
		for len(w.inFlight) > 0 {
			w.answer()
		}
		for len(w.late) > 0 {
			w.arriveLate()
		}
		for i := range w.replicas {
			w.deliver(i, len(w.events))
		}
		for w.decide(w.leader) {
		}
		w.now = w.now.Add(time.Minute)
	}
}

// A lost request or answer, one that comes late, a node that vanishes and a Pod that is deleted or changed between
// decision and binding, a hand-over, and a leader that decides on without knowing that it leads no longer: no Pod is
// bound twice, no replica asks for more than a node has that could know it or keeps room for what is not there, and no
// Pod is forgotten that fits. SAF-121, POD-025, POD-026
func TestNothingLeaksThroughHandOvers(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(150) {
		w := newRivalry(t, seed)
		for range 150 {
			w.step()
		}
		w.settle()
		for what, n := range w.met {
			met[what] += n
		}
		if len(w.inFlight) > 0 {
			t.Fatalf("seed %d: %d bindings never end", seed, len(w.inFlight))
		}
		for i, replica := range w.replicas {
			for name := range w.nodes {
				state := replica.State()
				if got, want := state.Node(state.Slot(name)).Room().Used[0], w.used(name); got != want {
					t.Errorf("seed %d: replica %d keeps %d of %s, its Pods take %d", seed, i, got, name, want)
				}
			}
		}
		for _, p := range w.pods {
			need := cpuOf(p)
			for name, n := range w.nodes {
				if free := n.Status.Allocatable.Cpu().MilliValue() - w.used(name); p.Spec.NodeName == "" &&
					free >= need {
					t.Errorf("seed %d: pod %s waits, and fits on %s", seed, p.Name, name)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	for _, what := range []string{"lost", "late", "done and given up", "refused"} {
		if met[what] == 0 {
			t.Errorf("no request was %s: %v", what, met)
		}
	}
}
