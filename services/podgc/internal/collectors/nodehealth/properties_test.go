package nodehealth

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// world is an API with nodes that renew their Leases, and the collector that looks after them, all on one clock.
type world struct {
	now    time.Time
	nodes  map[string]*corev1.Node
	mute   map[string]bool
	leases map[string]int64
	phase  map[string]time.Duration // when in each 10 seconds a node renews
	fleet  *fleet
	looked time.Time
	asleep bool // the collector does not look
	again  map[string]time.Time
	// writes counts, and givenUp notes when a node got a NoExecute taint and none was before.
	writes  int
	givenUp map[string]time.Time
}

func newWorld(r *rand.Rand, zones ...int) *world {
	w := &world{now: start, nodes: map[string]*corev1.Node{}, mute: map[string]bool{}, leases: map[string]int64{},
		phase: map[string]time.Duration{}, givenUp: map[string]time.Time{}}
	for z, size := range zones {
		for i := range size {
			n := newNode(fmt.Sprintf("z%d-%02d", z, i), ready("True"))
			n.Labels = map[string]string{"topology.kubernetes.io/zone": fmt.Sprint("z", z)}
			w.nodes[n.Name], w.phase[n.Name] = n, time.Duration(r.IntN(10))*time.Second
		}
	}
	w.lead()
	return w
}

// lead is a new leader, which knows nothing.
func (w *world) lead() {
	w.fleet, w.looked, w.again = newFleet(DefaultSettings()), time.Time{}, map[string]time.Time{}
	for name, n := range w.nodes {
		w.fleet.take(n, w.now)
		w.again[name] = w.now
	}
}

// run lets time pass, second by second.
func (w *world) run(d time.Duration) {
	for range int(d / time.Second) {
		w.now = w.now.Add(time.Second)
		for name, n := range w.nodes {
			if w.mute[name] || w.now.Sub(start)%(10*time.Second) != w.phase[name] {
				continue
			}
			w.leases[name] = w.now.UnixMicro()
			if c := &n.Status.Conditions[0]; c.Status == corev1.ConditionUnknown {
				w.report(n, "True")
			}
		}
		if w.asleep {
			continue
		}
		if w.now.Sub(w.looked) >= 10*time.Second {
			w.looked = w.now
			names := map[string]bool{}
			for name := range w.nodes {
				names[name] = true
			}
			w.fleet.look(names, w.leases, w.now)
		}
		w.settle()
	}
}

// report is what a node writes about itself.
func (w *world) report(n *corev1.Node, status corev1.ConditionStatus) {
	n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Reason: "Kubelet",
		LastHeartbeatTime: metav1.NewTime(w.now), LastTransitionTime: metav1.NewTime(w.now)}
	for i := range n.Status.Conditions[1:] {
		n.Status.Conditions[1+i].Status = corev1.ConditionFalse
	}
	w.again[n.Name] = w.now
}

// settle makes passes until none is requested.
func (w *world) settle() {
	for {
		for _, name := range w.fleet.due() {
			w.again[name] = w.now
		}
		busy := false
		for _, name := range slices.Sorted(keysOf(w.again)) {
			if n := w.nodes[name]; n == nil || !w.again[name].After(w.now) {
				delete(w.again, name)
				if busy = true; n != nil {
					w.pass(n)
				}
			}
		}
		if !busy {
			return
		}
	}
}

func keysOf[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (w *world) pass(n *corev1.Node) {
	w.fleet.take(n, w.now)
	in := Input{Now: w.now, Node: n, Standing: w.fleet.stand(n, w.now)}
	plan := Decide(in)
	before := isGivenUp(n)
	if plan.Conditions != nil {
		n.Status.Conditions = plan.Conditions
	}
	if plan.Retaint {
		n.Spec.Taints = plan.Taints
	}
	switch after := isGivenUp(n); {
	case after && !before:
		w.givenUp[n.Name] = w.now
	case before && !after:
		delete(w.givenUp, n.Name)
	}
	if plan.Conditions != nil || plan.Retaint {
		w.writes++
		w.again[n.Name] = w.now
	} else if in.Wait > 0 {
		w.again[n.Name] = w.now.Add(in.Wait)
	}
}

// silence makes nodes silent.
func (w *world) silence(names ...string) {
	for _, name := range names {
		w.mute[name] = true
	}
}

// first returns the names of the first n nodes of a zone.
func first(zone, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("z%d-%02d", zone, i))
	}
	return names
}

func (w *world) lost() int {
	n := 0
	for _, node := range w.nodes {
		if node.Status.Conditions[0].Status == corev1.ConditionUnknown {
			n++
		}
	}
	return n
}

// POD-080 SAF-179: of 20 nodes one falls silent. It is lost 50 seconds after its last
// renewal and not before, at most one look for that renewal and one for the silence later, and given up at once.
func TestOneOfManyFallsSilent(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(rand.New(rand.NewPCG(seed, 1)), 20)
		w.run(2 * time.Minute)
		w.silence("z0-07")
		renewed := time.UnixMicro(w.leases["z0-07"])
		for w.lost() == 0 && w.now.Sub(renewed) < time.Hour {
			w.run(time.Second)
		}
		if after := w.now.Sub(renewed); after < 50*time.Second || after > 71*time.Second {
			t.Fatalf("seed %d: lost after %v", seed, after)
		}
		if len(w.givenUp) != 1 || shortTaints(w.nodes["z0-07"].Spec.Taints) !=
			"unreachable:NoSchedule unreachable:NoExecute" {
			t.Fatalf("seed %d: %v are given up, taints %q", seed, w.givenUp, shortTaints(w.nodes["z0-07"].Spec.Taints))
		}
		delete(w.mute, "z0-07")
		w.run(11 * time.Second)
		if w.lost() != 0 || len(w.nodes["z0-07"].Spec.Taints) != 0 {
			t.Fatalf("seed %d: it is back, but has %q", seed, shortTaints(w.nodes["z0-07"].Spec.Taints))
		}
	}
}

// When all fall silent none is given up, however far apart they are noticed, in one zone or several.
func TestAllFallSilent(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		zones := [][]int{{20}, {1}, {2}, {3, 1}, {60, 5, 2}}[r.IntN(5)]
		w := newWorld(r, zones...)
		w.run(2 * time.Minute)
		for name := range w.nodes {
			w.silence(name)
		}
		for range 600 {
			w.run(time.Second)
			if len(w.givenUp) > 0 {
				t.Fatalf("seed %d: zones %v: %v were given up", seed, zones, w.givenUp)
			}
		}
		if w.lost() != len(w.nodes) {
			t.Fatalf("seed %d: zones %v: %d of %d are lost", seed, zones, w.lost(), len(w.nodes))
		}
		// The first ones that return do not condemn the others, which are on their way.
		w.mute = map[string]bool{}
		w.run(12 * time.Second)
		if w.lost() != 0 || len(w.givenUp) > 0 {
			t.Fatalf("seed %d: zones %v: after their return %d are lost, %v given up", seed, zones, w.lost(), w.givenUp)
		}
		// Those that stay away longer than the grace period are.
		w.silence("z0-00")
		if w.run(75 * time.Second); len(w.nodes) > 1 && len(w.givenUp) != 1 {
			t.Fatalf("seed %d: zones %v: one fell silent again, %v given up", seed, zones, w.givenUp)
		}
	}
}

// What was given up before all fell silent is taken back, and given up again only after a whole grace period.
func TestTakenBack(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(1, 3)), 4)
	w.silence("z0-00")
	if w.run(2 * time.Minute); len(w.givenUp) != 1 {
		t.Fatalf("given up: %v", w.givenUp)
	}
	w.silence(first(0, 4)...)
	if w.run(75 * time.Second); len(w.givenUp) != 0 {
		t.Fatalf("all are silent, and %v are still given up", w.givenUp)
	}
	w.mute = map[string]bool{"z0-00": true}
	w.run(12 * time.Second) // the others have all returned
	if w.run(37 * time.Second); len(w.givenUp) != 0 {
		t.Fatalf("given up within a grace period: %v", w.givenUp)
	}
	if w.run(30 * time.Second); len(w.givenUp) != 1 {
		t.Fatalf("given up in the end: %v", w.givenUp)
	}
}

// How fast the nodes of a zone are given up, and that zones do not wait for each other.
func TestPaceOfZones(t *testing.T) {
	for name, test := range map[string]struct {
		zones  []int
		silent []string
		within time.Duration
		want   int
	}{
		"a normal zone: one per 10 s":             {[]int{20}, first(0, 5), 71*time.Second + 29*time.Second, 5},
		"much of a small zone: none":              {[]int{20}, first(0, 11), time.Hour, 0},
		"just less than much":                     {[]int{20}, first(0, 10), 30 * time.Minute, 10},
		"much of a large zone: one per 100 s":     {[]int{60}, first(0, 40), 71*time.Second + 300*time.Second, 4},
		"a whole zone, while others are in order": {[]int{4, 4}, first(0, 4), 71*time.Second + 40*time.Second, 4},
		"two zones at a time": {[]int{10, 10}, append(first(0, 2), first(1, 2)...),
			83 * time.Second, 4},
		"two of three": {[]int{3}, first(0, 2), 3 * time.Minute, 2},
		"all but one zone, with much of that one too": {[]int{4, 4}, append(first(0, 4), first(1, 3)...),
			10 * time.Minute, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(rand.New(rand.NewPCG(1, 4)), test.zones...)
			w.run(2 * time.Minute)
			w.silence(test.silent...)
			w.run(test.within)
			if len(w.givenUp) != test.want {
				t.Fatalf("%d were given up in %v, want %d", len(w.givenUp), test.within, test.want)
			}
			byZone := map[string][]time.Time{}
			for name, at := range w.givenUp {
				byZone[name[:2]] = append(byZone[name[:2]], at)
			}
			for zone, times := range byZone {
				slices.SortFunc(times, time.Time.Compare)
				for i := range times[1:] {
					if gap := times[i+1].Sub(times[i]); gap < 10*time.Second {
						t.Errorf("in %s two were given up within %v", zone, gap)
					}
				}
			}
		})
	}
}

// A new leader gives every node a whole grace period of its own time, and goes on at the pace of the last one.
func TestANewLeader(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(1, 5)), 20)
	w.run(time.Minute)
	w.silence(first(0, 4)...)
	w.run(45 * time.Second)
	w.lead()
	if w.run(49 * time.Second); w.lost() != 0 {
		t.Fatalf("%d are lost 49 s after the change of leaders", w.lost())
	}
	if w.run(12 * time.Second); w.lost() != 4 || len(w.givenUp) == 0 {
		t.Fatalf("%d are lost, %v given up", w.lost(), w.givenUp)
	}
	for range 12 {
		before := len(w.givenUp)
		w.lead()
		if w.run(5 * time.Second); len(w.givenUp) != before {
			t.Fatal("a leader that lives for 5 s gives nodes up")
		}
	}
	for name := range w.mute {
		if w.nodes[name].Status.Conditions[0].Status != corev1.ConditionUnknown {
			t.Errorf("%s became %s", name, w.nodes[name].Status.Conditions[0].Status)
		}
	}
}

// Nodes that report that they are not ready are given up at the zone's pace without being silent; a leader's change
// does not double it.
func TestPaceGoesOnWithTheNextLeader(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(1, 6)), 20)
	w.run(time.Minute)
	for _, name := range first(0, 4) {
		w.report(w.nodes[name], "False")
	}
	w.run(time.Second)
	for range 3 {
		w.lead()
		w.run(2 * time.Second)
	}
	if len(w.givenUp) != 1 {
		t.Errorf("within 7 s and three changes of leaders %d were given up, want 1", len(w.givenUp))
	}
	if w.run(25 * time.Second); len(w.givenUp) != 4 {
		t.Errorf("within 32 s %d were given up, want 4", len(w.givenUp))
	}
}

// Time in which the collector did not look does not count as the nodes' silence.
func TestNobodyLooked(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(1, 7)), 20)
	w.run(61 * time.Second) // the last look has seen all that was renewed
	w.asleep = true
	everybody := first(0, 20)
	w.silence(everybody...) // the apiserver is away
	w.run(10 * time.Minute)
	w.asleep, w.mute = false, map[string]bool{}
	writes := w.writes
	if w.run(2 * time.Minute); w.writes != writes || w.lost() != 0 {
		t.Errorf("%d writes, %d lost, because the apiserver was away", w.writes-writes, w.lost())
	}
}

// A settled mesh makes no writes, also one with lost nodes.
func TestSettled(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(1, 8)), 10, 3)
	w.run(2 * time.Minute)
	if w.writes != 0 {
		t.Errorf("%d writes about healthy nodes", w.writes)
	}
	w.silence("z0-00", "z1-00")
	w.run(3 * time.Minute)
	settled := w.writes
	if w.run(time.Hour); w.writes != settled || settled == 0 {
		t.Errorf("%d writes, after them %d about nothing new", settled, w.writes-settled)
	}
}

// A node without a Lease, or that never reported, has the start-up period of a minute.
func TestStartUp(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(1, 9)), 20)
	w.run(time.Minute)
	bare := newNode("z0-99")
	w.nodes[bare.Name], w.mute[bare.Name] = bare, true
	w.fleet.take(bare, w.now)
	w.again[bare.Name] = w.now
	if w.run(59 * time.Second); len(bare.Status.Conditions) != 0 ||
		shortTaints(bare.Spec.Taints) != "not-ready:NoSchedule" {
		t.Fatalf("within 59 s: %+v, taints %q", bare.Status.Conditions, shortTaints(bare.Spec.Taints))
	}
	if w.run(12 * time.Second); len(bare.Status.Conditions) != 4 || bare.Status.Conditions[0].Reason !=
		"NodeStatusNeverUpdated" {
		t.Fatalf("after 71 s: %+v", bare.Status.Conditions)
	}
}

// Nodes come, go, change their zone and are exempt at random: the counts of the zones are always those of the nodes.
func TestCounts(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 10))
		f, now, there := newFleet(DefaultSettings()), start, map[string]bool{}
		renewed := map[string]int64{}
		for range 200 {
			name := fmt.Sprint("n", r.IntN(8))
			switch r.IntN(4) {
			case 0:
				f.forget(name)
				delete(there, name)
			case 1:
				now = now.Add(time.Duration(r.IntN(15)) * time.Second)
				renewed[name] = now.UnixMicro()
				f.look(there, renewed, now)
			default:
				n := newNode(name, []nodeOption{ready("True"), ready("False"), ready("Unknown"),
					func(*corev1.Node) {}}[r.IntN(4)])
				n.Labels = map[string]string{"topology.kubernetes.io/zone": fmt.Sprint(r.IntN(2))}
				if r.IntN(4) == 0 {
					n.Labels["node.kubernetes.io/exclude-disruption"] = ""
				}
				there[name] = true
				f.take(n, now)
				f.stand(n, now)
			}
			f.due()
			want := map[string][3]int{}
			for _, m := range f.nodes {
				z := want[m.zone]
				if m.started && !m.exempt {
					z[0]++
					if m.notReady || f.isSilent(m) {
						z[1]++
					}
				}
				if m.waits {
					z[2]++
				}
				want[m.zone] = z
			}
			if len(f.zones) != len(want) || len(f.nodes) != len(there) {
				t.Fatalf("seed %d: %d zones of %d, %d nodes of %d", seed, len(f.zones), len(want), len(f.nodes),
					len(there))
			}
			for name, z := range f.zones {
				if got := [3]int{z.nodes, z.down, len(z.line)}; got != want[name] {
					t.Fatalf("seed %d: zone %s counts %v, want %v", seed, name, got, want[name])
				}
			}
		}
	}
}

// The grace period is over after 50 seconds for a node with a Lease, after 60 for one without, and not a look before;
// and a node that had its turn keeps it until its taint is written.
func TestGracePeriodsToTheSecond(t *testing.T) {
	for name, test := range map[string]struct {
		renewed map[string]int64
		want    time.Duration
	}{"with a Lease": {map[string]int64{"n": 1, "other": 1}, 50 * time.Second},
		"without one": {map[string]int64{"other": 1}, 60 * time.Second}} {
		f, node := newFleet(DefaultSettings()), newNode("n", ready("True"))
		there := map[string]bool{"n": true, "other": true}
		f.take(node, start)
		f.take(newNode("other", ready("True")), start)
		for after := time.Duration(0); after <= test.want; after += 10 * time.Second {
			test.renewed["other"]++
			f.look(there, test.renewed, start.Add(after))
			if got := f.stand(node, start.Add(after)).Silent; got != (after == test.want) {
				t.Errorf("%s: after %v silent: %v", name, after, got)
			}
		}
		lost, at := newNode("n", ready("Unknown")), start.Add(test.want)
		for range 2 {
			if !f.stand(lost, at).Evict {
				t.Errorf("%s: its turn is over before its taint is written", name)
			}
		}
	}
}
