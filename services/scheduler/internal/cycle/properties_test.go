package cycle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/volumes"
)

// world drives a Cycle and the reference through the same history.
type world struct {
	*history
	slow *cluster
	// template is the newest Pod.
	template *corev1.Pod
	// preparing is what the claims of flying Pods are to get.
	preparing map[types.UID][]volumes.Step
	judged    int
}

func newWorld(t *testing.T, seed uint64) *world {
	settings, otherwise := settingsOf(t, seed)
	settings.Profiles[0].Preempts = false
	fast := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: seed})
	w := &world{slow: newCluster(), preparing: map[types.UID][]volumes.Step{}}
	w.slow.otherwise = otherwise
	w.history = newHistory(t, fast, rand.New(rand.NewPCG(seed, 1)), w.slow.Nodes, w.slow.Pods)
	w.gen.seldom = newSeldom(seed)
	w.fast.Lead(corev1.DefaultSchedulerName, true, w.now)
	w.setClasses()
	return w
}

// step does one random thing to the cluster.
func (w *world) step() {
	w.resizeStep()
	switch g := w.gen; g.IntN(22) {
	case 20, 21:
		setLimits(g, w.fast, &w.slow.storage, fmt.Sprintf("n%d", g.IntN(g.nodes+1)))
	case 16, 17:
		w.groupStep()
	case 18:
		w.namespaceStep()
	case 19:
		w.relabel()
	case 0, 1:
		n := g.node(fmt.Sprintf("n%d", g.nodes))
		g.nodes++
		w.setNode(n)
	case 2:
		if name, ok := anyKey(g, w.slow.Nodes); ok {
			w.setNode(g.node(name))
		}
	case 3:
		if name, ok := anyKey(g, w.slow.Nodes); ok && g.chance(50) {
			delete(w.slow.Nodes, name)
			w.fast.RemoveNode(name)
		}
	case 4, 5:
		if uid, ok := anyKey(g, w.slow.Pods); ok {
			w.unprepare(uid)
			w.remove(w.slow.Pods[uid])
		}
	case 6:
		if uid, ok := anyKey(g, w.waiting); ok {
			w.remove(w.waiting[uid])
		}
	case 7: // bound by hand, also to a node that is not here
		p := g.pod()
		p.Spec.NodeName = fmt.Sprintf("n%d", g.IntN(g.nodes+1))
		w.bind(p)
	case 8, 9, 10:
		w.storageStep()
	default:
		for range 1 + g.IntN(3) {
			p := g.pod()
			if w.template != nil && g.chance(70) {
				// Pods of one class, as a controller makes them
				p.Spec, p.Labels, p.Namespace = w.template.Spec, w.template.Labels, w.template.Namespace
				p.OwnerReferences = w.template.OwnerReferences
			}
			w.template = p
			w.waiting[p.UID] = p
			w.fast.SetPod(p, w.now)
			w.makeClaim(p)
		}
	}
	if w.gen.chance(50) {
		w.settle()
	}
}

// settle lets the API answer some of the bindings.
func (w *world) settle() {
	for _, uid := range sorted(w.flying) {
		p := w.flying[uid]
		switch {
		case len(w.preparing[uid]) > 0:
			w.settleClaims(p)
		case w.gen.chance(60):
			w.bind(p)
		case w.gen.chance(30):
			w.refuse(p)
		}
	}
}

// drain decides until there is nothing to decide, and compares each verdict.
func (w *world) drain() {
	for w.next() {
	}
}

// next decides once.
func (w *world) next() bool {
	v, ok := w.fast.Next(w.now)
	if !ok {
		return false
	}
	w.check(v)
	if v.Node == "" {
		return true
	}
	w.place(v)
	w.prepare(v)
	return true
}

// check holds a verdict against the reference.
func (w *world) check(v cycle.Verdict) {
	w.t.Helper()
	w.judged++
	want := w.slow.Judge(v.Pod)
	if v.Nodes != len(w.slow.Nodes) {
		w.t.Fatalf("pod %s: %d nodes, want %d", v.Pod.Name, v.Nodes, len(w.slow.Nodes))
	}
	if v.Node == "" {
		got := map[string]int{}
		for _, r := range v.Reasons {
			got[r.Text] = r.Nodes
		}
		if len(want.Scores) > 0 || !maps.Equal(got, want.Refusals) {
			w.t.Fatalf("pod %s is refused for %v, want %v and nodes %v", v.Pod.Name, got, want.Refusals, want.Scores)
		}
		return
	}
	score, feasible := want.Scores[v.Node]
	if !feasible {
		w.t.Fatalf("pod %s is placed on %s, which cannot take it", v.Pod.Name, v.Node)
	}
	best, _ := want.Best()
	if score != best || v.Score != best {
		w.t.Fatalf("pod %s is placed on %s of score %d for %d, the best is %d", v.Pod.Name, v.Node, score, v.Score,
			best)
	}
	if v.Feasible != len(want.Scores) {
		w.t.Fatalf("pod %s could go to %d nodes, want %d", v.Pod.Name, v.Feasible, len(want.Scores))
	}
}

// checkNoneForgotten drains, with time enough for every delay, and sees that no Pod waits in vain: SCH-031, SCH-032.
func (w *world) checkNoneForgotten() {
	w.t.Helper()
	for placed := -1; placed != len(w.slow.Pods); { // one that is placed may help one that was tried before
		placed = len(w.slow.Pods)
		w.drain()
		w.now = w.now.Add(time.Minute) // longer than any delay, shorter than queue.MaxUnschedulable
		w.drain()
	}
	for _, uid := range sorted(w.waiting) {
		if v := w.slow.Judge(w.waiting[uid]); len(v.Scores) > 0 {
			w.t.Fatalf("pod %s waits although %v can take it", uid, v.Scores)
		}
	}
	depth := w.fast.Depths()
	if n := depth[queue.Unschedulable].Pods; n != len(w.waiting) {
		w.t.Fatalf("%d Pods are unschedulable, want %d", n, len(w.waiting))
	}
}

// How often the references compare; race_test.go says how often under the race detector.
var usualPlacements, usualPreemptions = 100_000, 10_000

// longer returns how often a test compares: as often as the environment says, else as usual.
func longer(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// The fast scheduler agrees with the slow, obvious one on feasible nodes, scores and reasons through random histories,
// and an event requeues every unschedulable Pod that it helps. KEELSON_PLACEMENTS asks for more decisions than the
// usual 100,000, KEELSON_SEED for others. SCH-030, SCH-031, SCH-032, SCH-033, SCH-138, SET-134, POD-229, POD-230,
// SAF-091
func TestAgreesWithReference(t *testing.T) {
	wanted, first := longer(t, "KEELSON_PLACEMENTS", usualPlacements), uint64(longer(t, "KEELSON_SEED", 0))
	const parts = 24
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			judged := 0
			for seed := first + part; judged*parts < wanted; seed += parts {
				judged += live(t, seed).judged
			}
		})
	}
}

// live compares one history and returns it.
func live(t *testing.T, seed uint64) *world {
	w := newWorld(t, seed)
	for range 150 {
		w.step()
		switch w.gen.IntN(3) {
		case 0:
			w.drain()
		case 1:
			w.next()
		}
		if w.gen.chance(20) {
			w.checkNoneForgotten()
		}
	}
	w.checkNoneForgotten()
	if w.fast.State().Pods() != len(w.slow.Pods) {
		t.Fatalf("seed %d: %d Pods take room, want %d", seed, w.fast.State().Pods(), len(w.slow.Pods))
	}
	return w
}

// The same history and seed give the same placements; another seed decides ties otherwise.
func TestSeedDecidesTies(t *testing.T) {
	place := func(seed uint64) []string {
		settings := config.Default()
		settings.Profiles[0].Preempts = false
		c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: seed})
		g := &generator{Rand: rand.New(rand.NewPCG(7, 7))}
		c.Lead(corev1.DefaultSchedulerName, true, time.Time{})
		for i := range 50 {
			n := g.node(fmt.Sprintf("n%d", i))
			n.Spec.Taints, n.Spec.Unschedulable = nil, false
			c.SetNode(n)
		}
		var nodes []string
		for range 100 {
			p := g.pod()
			p.Spec.Affinity, p.Spec.NodeSelector = nil, nil
			c.SetPod(p, time.Time{})
			if v, ok := c.Next(time.Time{}); ok {
				nodes = append(nodes, v.Node)
			}
		}
		return nodes
	}
	first := place(1)
	if !slices.Equal(first, place(1)) {
		t.Error("one seed gave two results")
	}
	if slices.Equal(first, place(2)) {
		t.Error("two seeds gave one result")
	}
}

// A random test whose failure names its seed fails with that seed again: it plays the same history each time.
func TestSeedsRepeatTheirHistories(t *testing.T) {
	for name, play := range map[string]func(seed uint64) *cycle.Cycle{
		"placements": func(seed uint64) *cycle.Cycle { return live(t, seed).fast },
		"preemptions": func(seed uint64) *cycle.Cycle {
			return compare(t, seed, kind{domains: true, units: true}).fast
		},
		"across nodes": func(seed uint64) *cycle.Cycle {
			return compare(t, seed, kind{domains: true, across: true}).fast
		},
		"groups": func(seed uint64) *cycle.Cycle {
			c, _ := compareGroup(t, seed, kind{domains: true, units: true})
			return c.fast
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				if first, second := takers(play(seed).State()), takers(play(seed).State()); first != second {
					t.Errorf("seed %d ends once with\n%s\nand once with\n%s", seed, first, second)
				}
			}
		})
	}
}

// takers lists which Pods take room on each node, which are nominated for it, and which leave.
func takers(s *columns.State) string {
	text := ""
	for slot := range columns.Slot(s.Slots()) {
		text += s.Name(slot) + ":"
		for _, o := range s.Occupants(slot) {
			text += fmt.Sprintf(" %s %v", o.Pod.UID, o.Pod.DeletionTimestamp)
		}
		for _, r := range s.Reservations(slot) {
			text += " for " + string(r.UID)
		}
		text += "\n"
	}
	return text
}

func sorted[V any](m map[types.UID]V) []types.UID { return slices.Sorted(maps.Keys(m)) }

func anyKey[K ~string, V any](g *generator, m map[K]V) (K, bool) {
	if len(m) == 0 {
		return "", false
	}
	return pick(g, slices.Sorted(maps.Keys(m))...), true
}
