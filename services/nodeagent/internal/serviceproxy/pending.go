package serviceproxy

import (
	"maps"
	"slices"
)

// pending is what the kernel does not have yet. A change that is taken stays pending until it is committed; one
// that comes in between stays pending after that.
type pending struct {
	// last is the number of the last change, taken the number up to which changes have been taken.
	last, taken uint64
	// services maps each Service to the number of its last change; all is the number of the last change of all
	// Services; 0 for none.
	services map[string]uint64
	all      uint64
}

// batch is the content of one transaction.
type batch struct {
	upTo uint64
	// whole means all Services, not only the listed ones.
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

// allAhead reports whether a change of all Services is pending that no batch has taken.
func (p *pending) allAhead() bool { return p.all > p.taken }

func (p *pending) empty() bool { return p.all == 0 && len(p.services) == 0 }

// has reports whether a change of a Service is missing in the kernel.
func (p *pending) has(name string) bool { return p.all > 0 || p.services[name] > 0 }

// take returns what is pending and keeps it pending.
func (p *pending) take() batch {
	p.taken = p.last
	return batch{upTo: p.last, whole: p.all > 0, services: slices.Sorted(maps.Keys(p.services))}
}

// commit notes that the kernel has what was taken.
func (p *pending) commit(b batch) {
	maps.DeleteFunc(p.services, func(_ string, change uint64) bool { return change <= b.upTo })
	if p.all <= b.upTo {
		p.all = 0
	}
}
