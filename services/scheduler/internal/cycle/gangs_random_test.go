package cycle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
)

// gangWorld makes a random cluster for several Cycles alike.
type gangWorld struct {
	gen     *generator
	nodes   []*corev1.Node
	running []*corev1.Pod
}

func newGangWorld(seed uint64) *gangWorld {
	w := &gangWorld{gen: &generator{Rand: rand.New(rand.NewPCG(seed, 7))}}
	for i := range 1 + w.gen.IntN(6) {
		w.nodes = append(w.nodes, w.gen.node(fmt.Sprintf("n%d", i)))
	}
	for i := range w.gen.IntN(12) {
		p := w.pod(fmt.Sprintf("r%d", i))
		p.Spec.NodeName = fmt.Sprintf("n%d", w.gen.IntN(len(w.nodes)))
		w.running = append(w.running, p)
	}
	return w
}

// pod returns a Pod without claims and of no priority.
func (w *gangWorld) pod(name string) *corev1.Pod {
	p := w.gen.pod()
	p.Namespace, p.Name, p.UID = "default", name, types.UID(name)
	p.Spec.Priority, p.Spec.Volumes, p.Spec.SchedulingGates = nil, nil, nil
	return p
}

// fixture returns a Cycle that knows the cluster.
func (w *gangWorld) fixture(t *testing.T, seed uint64) *fixture {
	settings := config.Default()
	c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: seed})
	c.Lead(corev1.DefaultSchedulerName, true, start)
	f := &fixture{Cycle: c, t: t, now: start}
	for _, n := range w.nodes {
		f.SetNode(n)
	}
	f.add(w.running...)
	return f
}

// place decides until nothing is left and returns the node of each Pod that got one.
func (f *fixture) place() map[string]string {
	nodes := map[string]string{}
	for {
		v, ok := f.Next(f.now)
		if !ok {
			return nodes
		}
		if v.Node != "" {
			nodes[v.Pod.Name] = v.Node
		}
	}
}

// counted sees that groups know how many Pods they have.
func (f *fixture) counted() {
	f.t.Helper()
	if wrong := f.Miscounted(); wrong != nil {
		f.t.Fatal(wrong)
	}
}

// columnsOf writes down what the columns hold.
func columnsOf(s *columns.State) string {
	text := fmt.Sprintf("%d nodes, %d pods\n", s.Nodes(), s.Pods())
	for slot := range columns.Slot(s.Slots()) {
		text += fmt.Sprintf("%s %v %+v %+v", s.Name(slot), s.Known(slot), *s.Node(slot).Room(), s.Reservations(slot))
		for _, o := range s.Occupants(slot) {
			text += " " + string(o.Pod.UID)
		}
		text += "\n"
	}
	return text
}

// alone returns the Pod as it is in no group.
func alone(p *corev1.Pod) *corev1.Pod {
	c := p.DeepCopy()
	c.Spec.SchedulingGroup = nil
	return c
}

// A group gets the nodes that its Pods would get one by one, if these are enough, and none of them if not. Then the
// columns are as they were, and each other Pod gets the node that it would get if the group had not been there.
func TestRandomGangs(t *testing.T) {
	whole, refused, part := 0, 0, 0
	for seed := range uint64(3000) {
		w := newGangWorld(seed)
		with, without, never := w.fixture(t, seed), w.fixture(t, seed), w.fixture(t, seed)
		var members, later []*corev1.Pod
		size := 1 + w.gen.IntN(6)
		template := w.pod("")
		for i := range size {
			p := w.pod(fmt.Sprintf("g%d", i))
			if w.gen.chance(60) { // most are alike
				name := p.Name
				p = template.DeepCopy()
				p.Name, p.UID = name, types.UID(name)
			}
			inGroup("g")(p)
			members = append(members, p)
		}
		for i := range 4 {
			later = append(later, w.pod(fmt.Sprintf("l%d", i)))
		}
		least := 1 + w.gen.IntN(size)
		with.add(members...)
		before := columnsOf(with.State())
		with.SetPodGroup(gangOf("g", int32(least)), with.now)
		got := with.place()
		for _, p := range members {
			without.add(alone(p))
		}
		want := without.place()
		if len(want) < least {
			want = map[string]string{}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: %d of %d got %v, want %v", seed, least, size, got, want)
		}
		switch len(got) {
		case size:
			whole++
		case 0:
			refused++
			if after := columnsOf(with.State()); after != before {
				t.Fatalf("seed %d: a refused group leaves\n%s\nwhere it was\n%s", seed, after, before)
			}
			for _, f := range []*fixture{with, never} {
				f.add(later...)
			}
			if got, want := with.place(), never.place(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d: after the group others got %v, without it %v", seed, got, want)
			}
		default:
			part++
		}
	}
	if whole < 300 || refused < 300 || part < 100 {
		t.Errorf("%d groups were placed whole, %d in part, %d not: the cases are too much alike", whole, part, refused)
	}
}

// A group never evicts in vain: with its victims gone, enough of it fits. What it only tried leaves no trace.
func TestRandomGangPreemptions(t *testing.T) {
	preempted, refused := 0, 0
	for seed := range uint64(2000) {
		w := newGangWorld(seed)
		f := w.fixture(t, seed)
		size := 1 + w.gen.IntN(4)
		for i := range size {
			p := w.pod(fmt.Sprintf("g%d", i))
			p.Spec.TopologySpreadConstraints, p.Spec.Affinity = nil, nil
			withPriority(10)(p)
			inGroup("g")(p)
			f.add(p)
		}
		before := columnsOf(f.State())
		group := gangOf("g", int32(size), ofPriority(10))
		if w.gen.chance(50) {
			inOne("zone")(group)
		}
		f.SetPodGroup(group, f.now)
		var victims []*corev1.Pod
		nominated, placed := map[string]string{}, 0
		for {
			v, ok := f.Next(f.now)
			if !ok {
				break
			}
			if v.Node != "" {
				placed++
			}
			f.counted()
			if v.Nominated != "" {
				nominated[v.Pod.Name] = v.Nominated
			}
			if v.Plan != nil {
				victims = append(victims, v.Plan.Victims...)
				f.Evicted(v.Pod.UID, nil, nil, f.now)
			}
		}
		switch {
		case placed > 0:
			continue
		case len(nominated) == 0:
			refused++
			if after := columnsOf(f.State()); after != before {
				t.Fatalf("seed %d: a refused group leaves\n%s\nwhere it was\n%s", seed, after, before)
			}
			continue
		}
		preempted++
		if len(nominated) != size || len(victims) == 0 {
			t.Fatalf("seed %d: %d of %d are nominated with %d victims", seed, len(nominated), size, len(victims))
		}
		zones := map[string]bool{}
		for _, node := range nominated {
			zone, _ := f.State().Label(f.State().Slot(node), "zone")
			zones[zone] = true
		}
		if group.Spec.SchedulingConstraints != nil && len(zones) != 1 {
			t.Fatalf("seed %d: nominated in %v", seed, zones)
		}
		for _, victim := range victims {
			f.RemovePod(victim)
		}
		f.counted()
		if got := f.place(); fmt.Sprint(got) != fmt.Sprint(nominated) {
			t.Fatalf("seed %d: with all victims gone they got %v, nominated were %v", seed, got, nominated)
		}
	}
	if preempted < 100 || refused < 100 {
		t.Errorf("%d groups preempted, %d were refused: the cases are too much alike", preempted, refused)
	}
}
