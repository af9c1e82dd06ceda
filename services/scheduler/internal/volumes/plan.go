package volumes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/nodenames"
)

// Why a node cannot take a Pod for its claims, in the field's words.
const (
	Conflict  = "node(s) didn't match PersistentVolume's node affinity"
	NoVolume  = "node(s) didn't find available persistent volumes to bind"
	NoStorage = "node(s) did not have enough free storage"
)

// Storage reports whether a volume of this size and class can be made for a node, and how much there is where it is
// made.
type Storage func(class string, size int64) (capacity int64, enough bool)

// Plan is what the claims without a volume get on a node, and why some get nothing.
type Plan struct {
	Picks                         []Pick
	Conflict, NoVolume, NoStorage bool
}

// Pick is what a claim without a volume gets on a node: a volume that is there, or nil for one that is to be made.
type Pick struct {
	Need   *Need
	Volume *Volume
	// capacity is how much there is where the volume is to be made, as far as that is known.
	capacity int64
}

// Plan says what the claims get on the node, whose name and labels are set. Without a Storage there is always enough.
func (d *Demand) Plan(node *corev1.Node, storage Storage) (p Plan) {
	taken := map[string]bool{}
	elsewhere := false
	for i := range d.Needs {
		n := &d.Needs[i]
		if n.Bound != nil {
			p.Conflict = p.Conflict || !n.Bound.allows(node)
			continue
		}
		pick := Pick{Need: n, Volume: n.choose(node, taken)}
		enough := true
		switch {
		case pick.Volume != nil:
			taken[pick.Volume.Name] = true
		case n.Node != "" && n.Node != node.Name:
			elsewhere = true
			continue
		case !n.Provision, !topology(n.Topologies, node):
			p.NoVolume = !p.NoStorage
			continue
		case n.Tracked && storage != nil:
			pick.capacity, enough = storage(n.class, n.size)
		}
		if !enough {
			p.NoStorage = !p.NoVolume
			continue
		}
		p.Picks = append(p.Picks, pick)
	}
	if elsewhere {
		p.NoVolume, p.NoStorage = true, false
	}
	return p
}

// scored reports whether nodes may differ in how full their storage gets by the claim.
func (n *Need) scored() bool { return n.Tracked || len(n.Choice) > 0 }

// Scored reports whether nodes may differ in how full their storage gets.
func (d *Demand) Scored() bool {
	return slices.ContainsFunc(d.Needs, func(n Need) bool { return n.scored() })
}

// Tracked reports whether it matters how much storage a node has.
func (d *Demand) Tracked() bool {
	return slices.ContainsFunc(d.Needs, func(n Need) bool { return n.Tracked })
}

// Score returns the mean score of the classes of which the claims get volumes, by what these ask and what there is: of
// the volumes that are there or, where none is, of the storage that is known. It is 0 where there is neither.
func (p Plan) Score(score func(requested, capacity int64) int64) int64 {
	found := slices.ContainsFunc(p.Picks, func(pick Pick) bool { return pick.Volume != nil })
	type amounts struct{ requested, capacity int64 }
	classes := map[string]amounts{}
	for _, pick := range p.Picks {
		sum, capacity := classes[pick.Need.class], pick.capacity
		switch {
		case pick.Volume != nil:
			capacity = pick.Volume.size
		case found || !pick.Need.Tracked:
			continue
		}
		classes[pick.Need.class] = amounts{sum.requested + pick.Need.size, sum.capacity + capacity}
	}
	total, n := int64(0), int64(len(classes))
	for _, of := range classes {
		if of.capacity > 0 {
			total += score(of.requested, of.capacity)
		} else {
			total += score(1, 1) // full
		}
	}
	if n == 0 {
		return 0
	}
	return (2*total + n) / (2 * n)
}

// choose returns the best volume that can be used on the node and is not taken.
func (n *Need) choose(node *corev1.Node, taken map[string]bool) *Volume {
	here, anywhere := n.index.byHost[node.Labels[corev1.LabelHostname]], n.index.others
	for len(here)+len(anywhere) > 0 {
		var next int
		if len(anywhere) == 0 || len(here) > 0 && here[0] < anywhere[0] {
			next, here = here[0], here[1:]
		} else {
			next, anywhere = anywhere[0], anywhere[1:]
		}
		if v := n.Choice[next]; !taken[v.Name] && v.allows(node) {
			return v
		}
	}
	return nil
}

// topology reports whether volumes of these topologies can be made for the node.
func topology(terms []corev1.TopologySelectorTerm, node *corev1.Node) bool {
	if len(terms) == 0 {
		return true
	}
	return slices.ContainsFunc(terms, func(t corev1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchLabelExpressions, func(r corev1.TopologySelectorLabelRequirement) bool {
			value, ok := node.Labels[r.Key]
			return !ok || !slices.Contains(r.Values, value)
		})
	})
}

// index files volumes by the hostnames to which they confine themselves, so that a node is compared with few.
type index struct {
	byHost map[string][]int
	others []int
}

func newIndex(choice []*Volume) index {
	ix := index{byHost: map[string][]int{}}
	for i, v := range choice {
		hosts, ok := v.hosts()
		if !ok {
			ix.others = append(ix.others, i)
			continue
		}
		for _, host := range hosts {
			ix.byHost[host] = append(ix.byHost[host], i)
		}
	}
	return ix
}

// hosts returns the hostnames to which the volume confines itself; false for one that does not.
func (v *Volume) hosts() ([]string, bool) {
	if v.selector == nil {
		return nil, false
	}
	names, hosts, ok := nodenames.Of(v.Spec.NodeAffinity.Required)
	if !ok || len(names) > 0 {
		return nil, false
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), true
}

// maxHosts bounds the nodes that are looked at one by one.
const maxHosts = 256

// Confined returns the nodes to which one of the claims confines the Pod, by name or hostname, and the reason of all
// others; false when none does.
func (d *Demand) Confined() (names, hosts []string, reason string, ok bool) {
	for i := range d.Needs {
		switch n := &d.Needs[i]; {
		case n.Bound != nil:
			if hosts, ok := n.Bound.hosts(); ok {
				return nil, hosts, Conflict, true
			}
		case n.Node != "":
			return []string{n.Node}, nil, NoVolume, true
		case !n.Provision && len(n.index.others) == 0 && len(n.index.byHost) <= maxHosts:
			for host := range n.index.byHost {
				hosts = append(hosts, host)
			}
			slices.Sort(hosts)
			return nil, hosts, NoVolume, true
		}
	}
	return nil, nil, "", false
}

// ReadsNames reports whether nodes of one shape may differ to the claims.
func (d *Demand) ReadsNames() bool {
	reads := func(v *Volume) bool {
		return v.selector != nil && slices.ContainsFunc(v.Spec.NodeAffinity.Required.NodeSelectorTerms, nodenames.Read)
	}
	for i := range d.Needs {
		n := &d.Needs[i]
		if n.Node != "" || n.Bound != nil && reads(n.Bound) || slices.ContainsFunc(n.Choice, reads) {
			return true
		}
		for _, t := range n.Topologies {
			for _, r := range t.MatchLabelExpressions {
				if r.Key == corev1.LabelHostname {
					return true
				}
			}
		}
	}
	return false
}
