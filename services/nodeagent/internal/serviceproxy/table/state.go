package table

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// State is what all Services together need in the kernel, and which part of it the kernel does not have yet. It
// does no I/O. Only one goroutine at a time may use it.
type State struct {
	services map[string]*service
	claims   map[plan.Destination][]claim
	// shared counts the Services that need an element that several may need.
	shared        map[Element]int
	picks         map[Pick]int
	prefixLengths map[PrefixLength]int
	// edits are the elements that changed since the last Commit; nil before the first, when the kernel has nothing.
	edits map[entry]edit
	// newPicks are those added or removed since then; the value says whether the kernel has it.
	newPicks             map[Pick]bool
	prefixLengthsChanged bool
}

type service struct {
	plan    plan.Plan
	created time.Time
}

// claim is a Service's claim to a destination.
type claim struct {
	name    string
	created time.Time
	rank    plan.Rank
}

type entry struct{ set, key string }

type edit struct {
	had, has      bool
	before, after string
}

// NewState returns a state without Services.
func NewState() *State {
	return &State{
		services: map[string]*service{}, claims: map[plan.Destination][]claim{}, shared: map[Element]int{},
		picks: map[Pick]int{}, prefixLengths: map[PrefixLength]int{},
	}
}

// Plan returns a Service's current plan.
func (s *State) Plan(name string) (plan.Plan, bool) {
	if found, ok := s.services[name]; ok {
		return found.plan, true
	}
	return plan.Plan{}, false
}

// Replace replaces a Service's plan. It returns sentences about destinations that other Services hold.
func (s *State) Replace(name string, created time.Time, next plan.Plan) []string {
	old := s.services[name]
	claimed := next.Destinations()
	if old != nil {
		claimed = append(claimed, old.plan.Destinations()...)
		keepPlacesOf(&old.plan, &next)
	}
	rivals := s.rivals(name, claimed)
	for _, rival := range rivals {
		s.countService(rival, -1)
	}
	s.countService(name, -1)
	for _, key := range claimed {
		s.claims[key] = slices.DeleteFunc(s.claims[key], func(c claim) bool { return c.name == name })
	}
	delete(s.services, name)
	if len(next.Ports) > 0 || len(next.ClusterIPs) > 0 {
		s.services[name] = &service{next, created}
		for i := range next.Ports {
			for _, f := range next.Ports[i].Frontends {
				s.claims[f.Destination] = append(s.claims[f.Destination], claim{name, created, f.Rank})
			}
		}
	}
	for _, key := range claimed {
		if slices.SortFunc(s.claims[key], stronger); len(s.claims[key]) == 0 {
			delete(s.claims, key)
		}
	}
	s.countService(name, 1)
	for _, rival := range rivals {
		s.countService(rival, 1)
	}
	return s.lostClaims(name)
}

// keepPlacesOf keeps the endpoints of a plan at their places in the old one.
func keepPlacesOf(old, next *plan.Plan) {
	for i := range next.Ports {
		p := &next.Ports[i]
		for k := range old.Ports {
			if o := &old.Ports[k]; o.ID == p.ID && o.IPv6 == p.IPv6 {
				p.ClusterEndpoints = keepPlaces(o.ClusterEndpoints, p.ClusterEndpoints)
				p.LocalEndpoints = keepPlaces(o.LocalEndpoints, p.LocalEndpoints)
			}
		}
	}
}

// stronger orders the claims to a destination: the first holds it.
func stronger(a, b claim) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), a.created.Compare(b.created), cmp.Compare(a.name, b.name))
}

// rivals returns the other Services that claim one of the destinations.
func (s *State) rivals(name string, claimed []plan.Destination) []string {
	var out []string
	for _, key := range claimed {
		for _, c := range s.claims[key] {
			if c.name != name && !slices.Contains(out, c.name) {
				out = append(out, c.name)
			}
		}
	}
	return out
}

func (s *State) holds(name string) func(plan.Destination) bool {
	return func(d plan.Destination) bool { return s.claims[d][0].name == name }
}

// lostClaims returns sentences about the Service's destinations that another Service holds.
func (s *State) lostClaims(name string) []string {
	var out []string
	found := s.services[name]
	if found == nil {
		return nil
	}
	for _, to := range found.plan.Destinations() {
		if first := s.claims[to][0]; first.name != name {
			if len(out) == plan.MaxProblems {
				return append(out, plan.MoreProblems)
			}
			out = append(out, fmt.Sprintf("%s is Service %s's; it is left out",
				netip.AddrPortFrom(to.Addr, to.Port), first.name))
		}
	}
	return out
}

// countService adds what a Service needs, or subtracts it.
func (s *State) countService(name string, by int) {
	found := s.services[name]
	if found == nil {
		return
	}
	holds := s.holds(name)
	planElements(&found.plan, holds, func(e Element) { s.count(e, by) })
	planPicks(&found.plan, holds, func(p Pick) { s.countPick(p, by) })
	for _, source := range found.plan.SourceRanges {
		length := PrefixLength{source.Addr().Is6(), source.Bits()}
		before := s.prefixLengths[length]
		if s.prefixLengths[length] = before + by; before+by == 0 {
			delete(s.prefixLengths, length)
		}
		s.prefixLengthsChanged = s.prefixLengthsChanged || before == 0 || before+by == 0
	}
}

// isShared reports whether several Services may need an element of the set.
func isShared(set string) bool {
	switch set[:len(set)-1] {
	case setClusters, setHairpin:
		return true
	}
	return false
}

func (s *State) count(e Element, by int) {
	if isShared(e.Set) {
		before := s.shared[e]
		if s.shared[e] = before + by; before+by == 0 {
			delete(s.shared, e)
		}
		if before > 0 && before+by > 0 {
			return
		}
	}
	if s.edits == nil {
		return
	}
	at := entry{e.Set, e.Key}
	change, known := s.edits[at]
	if !known && by < 0 {
		change.had, change.before = true, e.Value
	}
	if change.has = by > 0; change.has {
		change.after = e.Value
	}
	s.edits[at] = change
}

func (s *State) countPick(p Pick, by int) {
	before := s.picks[p]
	if s.picks[p] = before + by; before+by == 0 {
		delete(s.picks, p)
	}
	if s.edits != nil && (before == 0) != (before+by == 0) {
		if was, known := s.newPicks[p]; known && was == (before+by > 0) {
			delete(s.newPicks, p) // back to what the kernel has
		} else {
			s.newPicks[p] = before > 0
		}
	}
}

// Ruleset returns everything that is wanted on a node.
func (s *State) Ruleset(node plan.Node) Ruleset {
	elements := Elements{}
	for name, found := range s.services {
		planElements(&found.plan, s.holds(name), func(e Element) {
			if elements[e.Set] == nil {
				elements[e.Set] = map[string]string{}
			}
			elements[e.Set][e.Key] = e.Value
		})
	}
	return Ruleset{Elements: elements, Picks: slices.Collect(maps.Keys(s.picks)),
		PrefixLengths: slices.Collect(maps.Keys(s.prefixLengths)), Node: node}
}

// Commit notes that the kernel has what Ruleset or Changes returned last: Changes returns what comes after.
func (s *State) Commit() {
	s.edits, s.newPicks, s.prefixLengthsChanged = map[entry]edit{}, map[Pick]bool{}, false
}

// Changes returns what has changed since Commit.
func (s *State) Changes() Changes {
	c := Changes{PrefixLengthsChanged: s.prefixLengthsChanged,
		PrefixLengths: slices.Collect(maps.Keys(s.prefixLengths))}
	for at, e := range s.edits {
		if e.had && e.has && e.before == e.after {
			continue
		}
		if e.had {
			c.Gone = append(c.Gone, Element{at.set, at.key, e.before})
		}
		if e.has {
			c.New = append(c.New, Element{at.set, at.key, e.after})
		}
	}
	for p, was := range s.newPicks {
		if was {
			c.GonePicks = append(c.GonePicks, p)
		} else {
			c.NewPicks = append(c.NewPicks, p)
		}
	}
	return c
}

// Names returns the Services that have something in the kernel.
func (s *State) Names() iter.Seq[string] { return maps.Keys(s.services) }

// Len returns how many Services have something in the kernel.
func (s *State) Len() int { return len(s.services) }
