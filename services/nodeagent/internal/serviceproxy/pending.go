package serviceproxy

import (
	"maps"
	"slices"
)

// pending is what the kernel does not follow yet. What is taken stays pending until it is committed, and so does what
// changes between the two.
type pending struct {
	// last is the number of the last change, taken that up to which changes are on their way.
	last, taken uint64
	// services are by the number of the last change of each, all is that of the last change of all of them; 0 for none.
	services map[string]uint64
	all      uint64
}

// batch is what goes into one transaction.
type batch struct {
	upTo uint64
	// whole says that all Services are looked at, not those of the list alone.
	whole    bool
	services []string
}

func (p *pending) add(name string) {
	if p.services == nil {
		p.services = map[string]uint64{}
	}
	p.last++
	p.services[name] = p.last
}

func (p *pending) addAll() {
	p.last++
	p.all = p.last
}

// allAhead tells whether all Services are to be looked at after this.
func (p *pending) allAhead() bool { return p.all > p.taken }

func (p *pending) empty() bool { return p.all == 0 && len(p.services) == 0 }

// has tells whether a change of a Service is missing in the kernel.
func (p *pending) has(name string) bool { return p.all > 0 || p.services[name] > 0 }

// take returns what is pending, without ending that.
func (p *pending) take() batch {
	p.taken = p.last
	return batch{upTo: p.last, whole: p.all > 0, services: slices.Sorted(maps.Keys(p.services))}
}

// commit says that the kernel has what was taken.
func (p *pending) commit(b batch) {
	maps.DeleteFunc(p.services, func(_ string, change uint64) bool { return change <= b.upTo })
	if p.all <= b.upTo {
		p.all = 0
	}
}
