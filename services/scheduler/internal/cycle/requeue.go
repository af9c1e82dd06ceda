package cycle

import (
	"maps"
	"slices"
	"time"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/queue"
)

// Which event requeues which unschedulable Pod: one after which some node can take a Pod of its class. So it is not the
// kind of the event that counts (a node added, enlarged, relabelled, untainted or uncordoned; a Pod gone, finished, or
// not bound after all) but whether the node that it concerns passes the filters now. Only as many Pods are requeued as
// get a node, the most urgent first: one, and the next when that one was placed and a node can take yet another.

// unschedulable is the classes of unschedulable Pods. Classes whose Pods have left the queue by another way go at the
// next look.
type unschedulable struct {
	// anywhere is the classes that may go to any node.
	anywhere map[class.ID]*class.Class
	// pinned is the classes that confine themselves by name, by the names and hostnames. Nothing but an event of such a
	// node can help them.
	pinned map[string]map[class.ID]*class.Class
	// domains is the classes that look at domains, among these: a Pod that comes may help them.
	domains map[class.ID]*class.Class
	// again is the classes to be looked at though nothing became better: unschedulable Pods are of them now, for what
	// another Pod said, or a Pod left the queue that may have been requeued in place of another.
	again map[class.ID]*class.Class
}

// setUnschedulable puts away a Pod that no node can take.
func (c *Cycle) setUnschedulable(p *pod, now time.Time) {
	c.queue.AddUnschedulable(&p.Entry, now)
	c.unschedulable.add(p.class)
}

// add notes a class that has unschedulable Pods.
func (u *unschedulable) add(waiting *class.Class) {
	if waiting.LooksAtDomains() {
		waiting.DomainsChanged() // from here on
		u.domains[waiting.ID] = waiting
	}
	names := pinNames(waiting)
	if names == nil {
		u.anywhere[waiting.ID] = waiting
	}
	for _, name := range names {
		if u.pinned[name] == nil {
			u.pinned[name] = map[class.ID]*class.Class{}
		}
		u.pinned[name][waiting.ID] = waiting
	}
}

// dequeue takes a Pod out of the queue for good, or before its class changes.
func (c *Cycle) dequeue(p *pod) {
	c.mayLeaveRoom(p)
	c.queue.Remove(&p.Entry)
	if p.class == nil || c.queue.HasUnschedulable(p.class.ID) {
		return
	}
	for _, name := range pinNames(p.class) {
		delete(c.unschedulable.pinned[name], p.class.ID)
		if len(c.unschedulable.pinned[name]) == 0 {
			delete(c.unschedulable.pinned, name)
		}
	}
}

// mayLeaveRoom sees to it that the others of its class are looked at again when a Pod that may have been requeued in
// place of them leaves the class.
func (c *Cycle) mayLeaveRoom(p *pod) {
	if place, _, _ := p.Place(); place == queue.Active || place == queue.Backoff {
		c.unschedulable.again[p.class.ID] = p.class
	}
}

// requeueGained requeues Pods for the nodes and the domains that may have become better since the last call.
func (c *Cycle) requeueGained(now time.Time) {
	c.victims.units.Note(c.state)
	c.requeueAmong(c.unschedulable.again, now)
	clear(c.unschedulable.again)
	c.requeueOfLeft(now)
	for _, waiting := range c.unschedulable.domains {
		if !c.queue.HasUnschedulable(waiting.ID) {
			delete(c.unschedulable.domains, waiting.ID)
		} else if waiting.DomainsChanged() {
			c.requeueMore(waiting, now)
		}
	}
	gains := c.state.TakeGains()
	c.resumeGangs(len(gains) > 0, now)
	if len(gains) == 0 {
		return
	}
	c.requeueNominees(now, gains...)
	c.requeueAcross(now)
	c.requeueAmong(c.unschedulable.anywhere, now)
	for _, slot := range gains {
		c.requeueOver(slot, c.unschedulable.anywhere, now)
	}
	if len(c.unschedulable.pinned) == 0 {
		return
	}
	for _, slot := range gains {
		for _, name := range c.names(slot) {
			c.requeueAmong(c.unschedulable.pinned[name], now)
			c.requeueOver(slot, c.unschedulable.pinned[name], now)
		}
	}
}

func (c *Cycle) requeueAmong(classes map[class.ID]*class.Class, now time.Time) {
	for id, waiting := range classes {
		if !c.queue.HasUnschedulable(id) {
			delete(classes, id)
			continue
		}
		c.requeueMore(waiting, now)
	}
}

// requeueAcross requeues the Pods whose victims on other nodes are gone.
func (c *Cycle) requeueAcross(now time.Time) {
	if len(c.nominations.across) == 0 {
		return
	}
	for _, uid := range slices.Sorted(maps.Keys(c.nominations.across)) {
		p, slot := c.pods[uid], c.state.ReservedFor(uid)
		if p != nil && !p.placed() && slot != columns.None && c.nominations.fits(p, slot) {
			c.queue.Activate(&p.Entry, now)
		}
	}
}

// requeueMore requeues the next unschedulable Pod of a class if there is a node for it.
func (c *Cycle) requeueMore(waiting *class.Class, now time.Time) {
	if c.queue.HasUnschedulable(waiting.ID) && waiting.Feasible(c.state) > 0 {
		c.queue.Requeue(waiting.ID, now)
	}
}

// names returns the name and the hostname of a node, if it is there.
func (c *Cycle) names(slot columns.Slot) []string {
	if !c.state.Known(slot) {
		return nil
	}
	names := []string{c.state.Name(slot)}
	if host, ok := c.state.Hostname(slot); ok && host != names[0] {
		names = append(names, host)
	}
	return names
}

// pinNames returns the names and hostnames to which the class confines itself, nil when it does not.
func pinNames(c *class.Class) []string {
	pins := c.Pins()
	if pins == nil {
		return nil
	}
	names := slices.Concat([]string{}, pins.Names, pins.Hostnames)
	slices.Sort(names)
	return slices.Compact(names)
}
