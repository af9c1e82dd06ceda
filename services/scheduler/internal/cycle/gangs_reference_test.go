package cycle_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// bid is the room that a group gets on some nodes: where each of its Pods goes, in their order, and who leaves.
type bid struct {
	offer
	places []string
}

// expectGroup returns where the Pods of a group go, or are nominated, and who leaves for them, all of them on nodes of
// one value of the label if there is a key. Nothing is where fewer than least fit.
func (c *rivals) expectGroup(members []*corev1.Pod, least int, key string) string {
	domains := map[string]map[string]*corev1.Node{}
	for name, n := range c.Nodes {
		value, ok := n.Labels[key]
		if key != "" && !ok {
			continue
		}
		if domains[value] == nil {
			domains[value] = map[string]*corev1.Node{}
		}
		domains[value][name] = n
	}
	for _, evicts := range []bool{false, true} {
		var best *bid
		for _, value := range slices.Sorted(maps.Keys(domains)) {
			b := c.bid(members, domains[value], evicts)
			if b.node = value; b.fits() < least {
				continue
			}
			if best == nil || b.fits() > best.fits() || b.fits() == best.fits() && before(b.offer, best.offer) {
				best = &b
			}
		}
		if best != nil {
			return fmt.Sprint(strings.Join(best.places, " "), " ", names(best.victims))
		}
	}
	return "nothing"
}

func (b *bid) fits() (n int) {
	for _, place := range b.places {
		if place != "-" {
			n++
		}
	}
	return n
}

// bid gives each of the Pods in turn the best of the nodes that can take it, or else the room of others.
func (c *rivals) bid(members []*corev1.Pod, among map[string]*corev1.Node, evicts bool) (b bid) {
	now := *c
	now.cluster = c.without(&corev1.Pod{}, "", nil)
	now.disrupted = nil
	for _, p := range members {
		place := now.freest(p, among)
		if place == "" && evicts {
			var best *offer
			for _, n := range among {
				if o := now.try(p, n); len(o.reasons) == 0 && (best == nil || before(o, *best)) {
					best = &o
				}
			}
			if best != nil {
				place = best.node
				b.victims = append(b.victims, best.victims...)
			}
		}
		if place == "" {
			b.places = append(b.places, "-")
			continue
		}
		b.places = append(b.places, place)
		for _, victim := range b.victims {
			delete(now.Pods, victim.UID)
		}
		now.disrupted = b.victims
		placed := p.DeepCopy()
		placed.Spec.NodeName = place
		now.Pods[p.UID] = placed
	}
	slices.SortFunc(b.victims, important)
	used := map[string]int32{}
	for _, victim := range b.victims {
		if c.overdraws(victim, used) {
			b.violations++
		}
	}
	return b
}

// freest returns the node that the Pod gets of these if nobody leaves; nothing where none can take it.
func (c *rivals) freest(p *corev1.Pod, among map[string]*corev1.Node) (best string) {
	verdict := c.judgeAmong(p, among)
	for _, name := range slices.Sorted(maps.Keys(verdict.Scores)) {
		if best == "" || c.ahead(verdict, name, best) {
			best = name
		}
	}
	return best
}

// ahead reports whether the node comes before the other: by its score, then with fewer Pods, then by the seed.
func (c *rivals) ahead(v expectation, a, b string) bool {
	if v.Scores[a] != v.Scores[b] {
		return v.Scores[a] > v.Scores[b]
	}
	if few, more := len(c.on(c.Nodes[a])), len(c.on(c.Nodes[b])); few != more {
		return few < more
	}
	return c.ties[a] > c.ties[b]
}

// A group gets the places that the slow, obvious reference finds, and takes the room of the same Pods, with and without
// a topology constraint. KEELSON_PREEMPTIONS asks for more than the usual 10,000.
func TestGangPreemptionAgreesWithReference(t *testing.T) {
	wanted := longer(t, "KEELSON_PREEMPTIONS", usualPreemptions)
	const parts = 8
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			counts := map[string]int{}
			for seed := part; counts["preempts"] < wanted/parts; seed += parts {
				counts[compareGroup(t, seed, part%2 == 1)]++
				if t.Failed() {
					return
				}
			}
			for _, kind := range []string{"fits", "preempts", "waits"} {
				if counts[kind] < wanted/parts/20 {
					t.Errorf("the cases are too much alike: %v", counts)
				}
			}
		})
	}
}

// compareGroup has both decide for one random group, and returns what became of it.
func compareGroup(t *testing.T, seed uint64, domains bool) (kind string) {
	c := newContest(t, seed, domains, false)
	for range 8 {
		c.step()
	}
	for _, p := range c.slow.Pods {
		if c.gen.chance(5) && rank(p) < 0 {
			c.set(leaving(p))
		}
	}
	members, key := c.group()
	least := 1 + c.gen.IntN(len(members))
	group := gangOf("g", int32(least), ofPriority(int32(rank(members[0]))))
	if key != "" {
		inOne(key)(group)
	}
	c.slow.ties = map[string]uint32{}
	for name := range c.slow.Nodes {
		c.slow.ties[name] = c.fast.State().Tie(c.fast.State().Slot(name))
	}
	want := c.slow.expectGroup(members, least, key)
	for _, p := range members {
		c.fast.SetPod(p, c.now)
	}
	c.fast.SetPodGroup(group, c.now)
	places, gone, kind, tries := map[string]string{}, []*corev1.Pod{}, "waits", 0
	for v, ok := c.fast.Next(c.now); ok; v, ok = c.fast.Next(c.now) {
		switch tries++; {
		case tries > 2*len(members):
			t.Fatalf("seed %d: the group is tried again though nothing happened", seed)
		case tries > len(members):
			continue // the rest of it, once more after some got nodes
		}
		gone = append(gone, victims(v)...)
		places[v.Pod.Name] = cmp.Or(v.Node, v.Nominated, "-")
		switch {
		case v.Node != "":
			kind = "fits"
		case v.Nominated != "":
			kind = "preempts"
		}
	}
	slices.SortFunc(gone, important)
	var order []string
	for _, p := range members {
		order = append(order, places[p.Name])
	}
	got := fmt.Sprint(strings.Join(order, " "), " ", names(gone))
	if kind == "waits" {
		got = "nothing"
	}
	if got != want {
		t.Fatalf("seed %d: %d of %d by %q: got %s, want %s", seed, least, len(members), key, got, want)
	}
	return kind
}

// group returns the Pods of a group, in the order in which they are tried, and the label that its nodes agree on.
func (c *contest) group() (members []*corev1.Pod, key string) {
	template := c.pod(0)
	for i := range 1 + c.gen.IntN(5) {
		p := c.pod(0)
		if c.gen.chance(60) { // most are alike
			p = template.DeepCopy()
		}
		p.Name, p.UID, p.Namespace = fmt.Sprintf("g%d", i), types.UID(fmt.Sprintf("g%d", i)), "default"
		p.Spec.Priority, p.Spec.SchedulingGates = template.Spec.Priority, nil
		inGroup("g")(p)
		members = append(members, p)
	}
	return members, pick(c.gen, "", "zone", "zone", zone, corev1.LabelHostname)
}
