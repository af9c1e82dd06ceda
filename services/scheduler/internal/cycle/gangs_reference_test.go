package cycle_test

import (
	"fmt"
	"maps"
	"math"
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
	// seated are the Pods that were nominated before, except those that lost it to the group.
	seated map[types.UID]*corev1.Pod
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
		if evicts && slices.ContainsFunc(members, c.awaits) {
			break
		}
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

// bid gives each of the Pods a place, and takes back what that costs in vain. A Pod that does not fit once all victims
// are gone, those of the Pods after it too, gets no place.
func (c *rivals) bid(members []*corev1.Pod, among map[string]*corev1.Node, evicts bool) bid {
	members = slices.Clone(members)
	for {
		b := c.inTurn(members, among, evicts)
		misfit := -1
		if len(b.victims) > 0 {
			misfit = c.misfit(members, &b, b.victims)
		}
		if misfit < 0 {
			c.spare(members, &b)
			return b
		}
		members[misfit] = nil
	}
}

// inTurn gives each of the Pods in turn the best of the nodes that can take it, or else the room of others.
func (c *rivals) inTurn(members []*corev1.Pod, among map[string]*corev1.Node, evicts bool) (b bid) {
	now := c.copy(c.nominees, nil)
	b.seated = maps.Clone(c.nominees)
	for _, p := range members {
		if p == nil {
			b.places = append(b.places, "-")
			continue
		}
		place, over := now.free(p, among)
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
				over = true
			}
		}
		if over {
			unseat(now.nominees, p, place)
			unseat(b.seated, p, place)
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
		now.put(p, place)
	}
	return b
}

func (c *rivals) put(p *corev1.Pod, node string) {
	placed := p.DeepCopy()
	placed.Spec.NodeName = node
	c.Pods[p.UID] = placed
	delete(c.nominees, p.UID)
}

// copy returns the cluster with these nominees and without these Pods.
func (c *rivals) copy(nominees map[types.UID]*corev1.Pod, lacks []*corev1.Pod) *rivals {
	now := *c
	now.nominees, now.disrupted = maps.Clone(nominees), nil
	now.cluster = now.without(&corev1.Pod{}, "", lacks)
	return &now
}

// unseat keeps no room on the node for those that come after the Pod.
func unseat(nominees map[types.UID]*corev1.Pod, p *corev1.Pod, node string) {
	maps.DeleteFunc(nominees, func(_ types.UID, o *corev1.Pod) bool {
		return o.Spec.NodeName == node && rank(o) < rank(p)
	})
}

// misfit returns the first of the Pods that cannot go to its place beside those before it when these victims are gone;
// -1 when all can.
func (c *rivals) misfit(members []*corev1.Pod, b *bid, victims []*corev1.Pod) int {
	now := c.copy(b.seated, victims)
	for i, p := range members {
		if p == nil || b.places[i] == "-" {
			continue
		}
		n := c.Nodes[b.places[i]]
		own := now.keeps(p, n)
		delete(now.nominees, p.UID)
		if !own && !now.takes(p, n, nil) && !now.takes(p, n, now.leaving(n, rank(p))) {
			return i
		}
		now.put(p, n.Name)
	}
	return -1
}

// takes reports whether the node can take the Pod without those that it lacks: beside all for whom room is kept, and if
// they do not come.
func (c *rivals) takes(p *corev1.Pod, n *corev1.Node, lacks []*corev1.Pod) bool {
	beside, room, alone := c.without(p, n.Name, lacks), c.without(p, "", lacks), c.without(p, "", lacks)
	beside.kept, room.kept = c.nominees, c.nominees
	return len(beside.refusals(p, n))+len(room.refusals(p, n))+len(alone.refusals(p, n)) == 0
}

// keeps reports whether the Pod is nominated for the node and can go there: now if no other nominated Pod comes, and
// beside these once the Pods that leave are gone.
func (c *rivals) keeps(p *corev1.Pod, n *corev1.Node) bool {
	own := c.nominees[p.UID]
	return own != nil && own.Spec.NodeName == n.Name && len(c.without(p, "", nil).refusals(p, n)) == 0 &&
		len(c.refuses(p, n, c.leaving(n, math.MaxInt64))) == 0
}

// leaving returns the Pods of lower priority that leave the node.
func (c *rivals) leaving(n *corev1.Node, below int64) (pods []*corev1.Pod) {
	for _, p := range c.on(n) {
		if rank(p) < below && p.DeletionTimestamp != nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// awaits reports whether Pods of lower priority leave the node that the Pod is nominated for, which may help it.
func (c *rivals) awaits(p *corev1.Pod) bool {
	own := c.nominees[p.UID]
	if own == nil {
		return false
	}
	n, now := c.Nodes[own.Spec.NodeName], c.without(p, "", nil)
	now.kept = c.nominees
	reasons := now.refusals(p, n)
	return (len(reasons) == 0 || c.curable(reasons, p, n)) && len(c.leaving(n, rank(p))) > 0
}

// spare lets victims stay as long as all Pods fit, in the order of SCH-038, those of a unit together, and counts those
// whose budget is violated.
func (c *rivals) spare(members []*corev1.Pod, b *bid) {
	parties, _ := c.inOrder(c.units(b.victims))
	for more := true; more; {
		before := len(parties)
		parties = slices.DeleteFunc(parties, func(party []*corev1.Pod) bool {
			left := except(b.victims, party)
			stays := c.misfit(members, b, left) < 0
			if stays {
				b.victims = left
			}
			return stays
		})
		more = len(parties) < before
	}
	_, overdrawn := c.inOrder(parties)
	slices.SortFunc(b.victims, important)
	for _, victim := range b.victims {
		if overdrawn[victim] {
			b.violations++
		}
	}
}

func except(pods, lacks []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return slices.Contains(lacks, p) })
}

// free returns the node of these that the Pod gets without an eviction: the one that it is nominated for, or the best
// of those that can take it. Otherwise it returns the first by name that is reserved for Pods after it; then over is
// true. It returns nothing if there is none.
func (c *rivals) free(p *corev1.Pod, among map[string]*corev1.Node) (best string, over bool) {
	if own := c.nominees[p.UID]; own != nil {
		if n := among[own.Spec.NodeName]; n != nil && c.keeps(p, n) {
			return n.Name, false
		}
	}
	takers := maps.Clone(among)
	maps.DeleteFunc(takers, func(_ string, n *corev1.Node) bool { return !c.takes(p, n, nil) })
	now := c.without(p, "", nil)
	now.kept = c.nominees
	verdict := now.judgeAmong(p, takers)
	for _, name := range slices.Sorted(maps.Keys(verdict.Scores)) {
		if best == "" || c.ahead(now, verdict, name, best) {
			best = name
		}
	}
	if best != "" {
		return best, false
	}
	for _, name := range slices.Sorted(maps.Keys(among)) {
		if c.outranks(p, name) && len(c.refuses(p, among[name], nil)) == 0 {
			return name, true
		}
	}
	return "", false
}

// outranks reports whether room is kept on the node for one that comes after the Pod.
func (c *rivals) outranks(p *corev1.Pod, node string) bool {
	for _, o := range c.nominees {
		if o.Spec.NodeName == node && rank(o) < rank(p) {
			return true
		}
	}
	return false
}

// ahead reports whether the node comes before the other: by its score, then with fewer Pods, then by the seed.
func (c *rivals) ahead(now *cluster, v expectation, a, b string) bool {
	if v.Scores[a] != v.Scores[b] {
		return v.Scores[a] > v.Scores[b]
	}
	if few, more := len(now.taking(c.Nodes[a])), len(now.taking(c.Nodes[b])); few != more {
		return few < more
	}
	return c.ties[a] > c.ties[b]
}

// A group gets the places that the slow, obvious reference finds, and takes the room of the same Pods, with and without
// a topology constraint and beside Pods that are nominated; no victim could stay with the group where it is. SCH-038.
// KEELSON_PREEMPTIONS asks for more than the usual 10,000, KEELSON_SEED for others.
func TestGangPreemptionAgreesWithReference(t *testing.T) {
	wanted, first := longer(t, "KEELSON_PREEMPTIONS", usualPreemptions), uint64(longer(t, "KEELSON_SEED", 0))
	const parts = 8
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			counts := map[string]int{}
			for seed := first + part; counts["preempts"] < wanted/parts; seed += parts {
				_, became := compareGroup(t, seed, kind{domains: part%2 == 1, units: part%4 > 1})
				counts[became]++
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
func compareGroup(t *testing.T, seed uint64, of kind) (c *contest, kind string) {
	c = newContest(t, seed, of)
	for range 8 {
		c.step()
	}
	for _, uid := range sorted(c.slow.Pods) {
		if p := c.slow.Pods[uid]; c.gen.chance(5) && rank(p) < 0 {
			c.set(leaving(p))
		}
	}
	for range c.gen.IntN(4) { // some of them are nominated from now on
		c.fast.SetPod(c.pod(0), c.now)
	}
	c.drain()
	members, key := c.gang()
	least := 1 + c.gen.IntN(len(members))
	group := gangOf("g", int32(least), ofPriority(int32(rank(members[0]))))
	if key != "" {
		inOne(key)(group)
	}
	c.slow.ties = map[string]uint32{}
	for name := range c.slow.Nodes {
		c.slow.ties[name] = c.fast.State().Tie(c.fast.State().Slot(name))
	}
	for _, p := range members {
		if c.gen.chance(20) { // as another scheduler left it
			p.Status.NominatedNodeName = fmt.Sprintf("n%d", c.gen.IntN(c.gen.nodes))
			nominee := p.DeepCopy()
			nominee.Spec.NodeName = p.Status.NominatedNodeName
			c.slow.nominees[p.UID] = nominee
		}
		c.fast.SetPod(p, c.now)
	}
	want := c.slow.expectGroup(members, least, key)
	c.fast.SetPodGroup(group, c.now)
	var seated map[types.UID]*corev1.Pod
	places, gone, tries := map[string]string{}, []*corev1.Pod{}, 0
	kind = "waits"
	for v, ok := c.fast.Next(c.now); ok; v, ok = c.fast.Next(c.now) {
		if tries == 0 {
			seated = c.seated()
		}
		if !slices.ContainsFunc(members, func(p *corev1.Pod) bool { return p.UID == v.Pod.UID }) {
			continue // one that lost its place
		}
		switch tries++; {
		case tries > 2*len(members):
			t.Fatalf("seed %d: the group is tried again though nothing happened", seed)
		case tries > len(members):
			continue // the rest of it, once more after some got nodes
		}
		gone = append(gone, victims(v)...)
		switch places[v.Pod.Name] = "-"; {
		case v.Node != "":
			kind, places[v.Pod.Name] = "fits", v.Node
		case kind != "fits" && v.Nominated != "" && !strings.Contains(v.Group, "a terminating pod"):
			kind, places[v.Pod.Name] = "preempts", v.Nominated
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
	for _, unit := range c.slow.units(gone) {
		if c.slow.misfit(members, &bid{places: order, seated: seated}, except(gone, unit)) < 0 {
			t.Fatalf("seed %d: %s need not go for %v: %s", seed, names(unit), order, names(gone))
		}
	}
	if got != want {
		t.Fatalf("seed %d: %d of %d by %q: got %s, want %s", seed, least, len(members), key, got, want)
	}
	return c, kind
}

// seated returns the Pods that were nominated before the group was tried, except those that lost it to the group.
func (c *contest) seated() map[types.UID]*corev1.Pod {
	seated := maps.Clone(c.slow.nominees)
	maps.DeleteFunc(seated, func(uid types.UID, p *corev1.Pod) bool {
		return p.Spec.SchedulingGroup == nil && c.fast.Nominated(uid) == ""
	})
	return seated
}

// gang returns the Pods of a group, in the order in which they are tried, and the label that its nodes agree on.
func (c *contest) gang() (members []*corev1.Pod, key string) {
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
