package serviceproxy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// State is what all Services together want of the kernel, and what of it has changed. It does no I/O.
type State struct {
	services map[string]*service
	claims   map[Key][]claim
	// shared counts the Services that want an element which is not one Service's own.
	shared  map[Element]int
	picks   map[Pick]int
	lengths map[Length]int
	// edits are the elements that changed since the last Changes; nil while nobody asks for changes.
	edits map[entry]edit
	// newPicks are those that have come or gone since, with what was there before.
	newPicks       map[Pick]bool
	lengthsChanged bool
}

type service struct {
	plan    Plan
	created time.Time
}

// claim is a Service's wish for a key.
type claim struct {
	name    string
	created time.Time
	rank    Rank
}

type entry struct{ set, key string }

type edit struct {
	had, has      bool
	before, after string
}

// Changes are what makes the kernel's tables right: first Gone is taken away, then New added.
type Changes struct {
	Gone, New           []Element
	GonePicks, NewPicks []Pick
	Lengths             []Length
	LengthsChanged      bool
}

// NewState returns the state without any Service.
func NewState() *State {
	return &State{
		services: map[string]*service{}, claims: map[Key][]claim{}, shared: map[Element]int{},
		picks: map[Pick]int{}, lengths: map[Length]int{},
	}
}

// Plan returns what a Service has now.
func (s *State) Plan(name string) (Plan, bool) {
	if found, ok := s.services[name]; ok {
		return found.plan, true
	}
	return Plan{}, false
}

// Replace puts a Service's plan in the place of its last. It returns sentences about keys that other Services hold.
func (s *State) Replace(name string, created time.Time, plan Plan) []string {
	old := s.services[name]
	keys := plan.keys()
	if old != nil {
		keys = append(keys, old.plan.keys()...)
		places(&old.plan, &plan)
	}
	rivals := s.rivals(name, keys)
	for _, rival := range rivals {
		s.each(rival, -1)
	}
	s.each(name, -1)
	for _, key := range keys {
		s.claims[key] = slices.DeleteFunc(s.claims[key], func(c claim) bool { return c.name == name })
	}
	delete(s.services, name)
	if len(plan.Ports) > 0 || len(plan.ClusterIPs) > 0 {
		s.services[name] = &service{plan, created}
		for i := range plan.Ports {
			for _, f := range plan.Ports[i].Frontends {
				s.claims[f.Key] = append(s.claims[f.Key], claim{name, created, f.Rank})
			}
		}
	}
	for _, key := range keys {
		if slices.SortFunc(s.claims[key], stronger); len(s.claims[key]) == 0 {
			delete(s.claims, key)
		}
	}
	s.each(name, 1)
	for _, rival := range rivals {
		s.each(rival, 1)
	}
	return s.taken(name)
}

func (p *Plan) keys() []Key {
	var out []Key
	for i := range p.Ports {
		for _, f := range p.Ports[i].Frontends {
			out = append(out, f.Key)
		}
	}
	return out
}

// places lets the endpoints of a plan stay where they were.
func places(old, plan *Plan) {
	for i := range plan.Ports {
		p := &plan.Ports[i]
		for k := range old.Ports {
			if o := &old.Ports[k]; o.ID == p.ID && o.Six == p.Six {
				p.Cluster, p.Local = keepPlaces(o.Cluster, p.Cluster), keepPlaces(o.Local, p.Local)
			}
		}
	}
}

// stronger orders the claims to a key: the first holds it.
func stronger(a, b claim) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), a.created.Compare(b.created), cmp.Compare(a.name, b.name))
}

// rivals are the other Services that claim one of the keys.
func (s *State) rivals(name string, keys []Key) []string {
	var out []string
	for _, key := range keys {
		for _, c := range s.claims[key] {
			if c.name != name && !slices.Contains(out, c.name) {
				out = append(out, c.name)
			}
		}
	}
	return out
}

func (s *State) held(name string) func(Key) bool {
	return func(key Key) bool { return s.claims[key][0].name == name }
}

// taken says which of a Service's keys another holds.
func (s *State) taken(name string) []string {
	var out []string
	found := s.services[name]
	if found == nil {
		return nil
	}
	for _, key := range found.plan.keys() {
		if first := s.claims[key][0]; first.name != name {
			if len(out) == mostProblems {
				return append(out, moreProblems)
			}
			out = append(out, fmt.Sprintf("%s is Service %s's; it is left out",
				netip.AddrPortFrom(key.Addr, key.Port), first.name))
		}
	}
	return out
}

// each adds what a Service wants, or takes it away.
func (s *State) each(name string, by int) {
	found := s.services[name]
	if found == nil {
		return
	}
	held := s.held(name)
	found.plan.elements(held, func(e Element) { s.count(e, by) })
	found.plan.picks(held, func(p Pick) { s.countPick(p, by) })
	for _, source := range found.plan.Sources {
		length := Length{source.Addr().Is6(), source.Bits()}
		before := s.lengths[length]
		if s.lengths[length] = before + by; before+by == 0 {
			delete(s.lengths, length)
		}
		s.lengthsChanged = s.lengthsChanged || before == 0 || before+by == 0
	}
}

// common are the sets whose elements several Services may want.
func common(set string) bool {
	switch set[:len(set)-1] {
	case setClusters, setHairpin:
		return true
	}
	return false
}

func (s *State) count(e Element, by int) {
	if common(e.Set) {
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
			delete(s.newPicks, p) // as it was
		} else {
			s.newPicks[p] = before > 0
		}
	}
}

// All returns everything that is wanted, and lets Changes tell what comes after.
func (s *State) All() (elements map[string]map[string]string, picks []Pick, lengths []Length) {
	elements = map[string]map[string]string{}
	for name, found := range s.services {
		found.plan.elements(s.held(name), func(e Element) {
			if elements[e.Set] == nil {
				elements[e.Set] = map[string]string{}
			}
			elements[e.Set][e.Key] = e.Value
		})
	}
	s.restart()
	return elements, slices.Collect(maps.Keys(s.picks)), slices.Collect(maps.Keys(s.lengths))
}

func (s *State) restart() {
	s.edits, s.newPicks, s.lengthsChanged = map[entry]edit{}, map[Pick]bool{}, false
}

// Changes returns what has changed since it was called last, or since All.
func (s *State) Changes() Changes {
	c := Changes{LengthsChanged: s.lengthsChanged, Lengths: slices.Collect(maps.Keys(s.lengths))}
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
	s.restart()
	return c
}

// Len is how many Services have something in the kernel.
func (s *State) Len() int { return len(s.services) }
