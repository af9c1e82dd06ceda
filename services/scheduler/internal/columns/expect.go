package columns

// A Pod that is nominated for a node counts in no domain, as it may never come. To a Pod that must leave it its place
// it counts on that node, beside what is there: to go there, the other has to fit with it and without it.

// Expect has a Pod for which room is kept on the node count in domains as if it were here.
func (t *Trial) Expect(r *Reservation) { t.expected = append(t.expected, *r) }

// Expects reports whether Pods are expected on the node.
func (n Node) Expects() bool { return len(n.expected) > 0 }

// Expected returns the domain of the node with the Pods that are expected there.
func (n Node) Expected(d *Domains) Domain {
	out := n.Domain(d)
	if !d.inScope(n.slot) {
		return out
	}
	come := 0
	for i := range n.expected {
		come += d.countsOf(n.expected[i].UID, n.expected[i].Pod)
	}
	if come == 0 {
		return out
	}
	before := out.Pods
	out.Pods, out.Total = out.Pods+come, out.Total+come
	if before == out.Least {
		out.Least = min(out.Pods, n.leastElsewhere(d))
	}
	return out
}

// leastElsewhere returns the least count of a domain other than the node's; a very large one where there is none.
func (n Node) leastElsewhere(d *Domains) int {
	own := d.where[n.slot]
	least := d.leastBut(d.pods[own])
	if n.gone == nil {
		return least
	}
	others := map[int32]int{}
	for _, b := range n.beside() {
		if number := d.number(b.slot); number != own && d.inScope(b.slot) {
			others[number] += d.countsOf(b.pod, d.state.pods[b.pod].pod)
			least = min(least, int(d.pods[number])-others[number])
		}
	}
	return least
}

// leastBut returns the least count of all domains but one that has this count.
func (d *Domains) leastBut(count int32) int {
	for at := d.least; at < len(d.atCount); at++ {
		others := d.atCount[at]
		if at == int(count) {
			others--
		}
		if others > 0 {
			return at
		}
	}
	return int(^uint(0) >> 1)
}
