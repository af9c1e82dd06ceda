package cycle

import (
	"slices"
	"time"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/queue"
)

// Which event wakes which parked Pod: one after which some node can take a Pod of its class. So it is not the kind of
// the event that counts (a node added, enlarged, relabelled, untainted or uncordoned; a Pod gone, finished, or not
// bound after all) but whether the node that it concerns passes the filters now. Only as many Pods are woken as get a
// node, the most urgent first: one, and the next when that one was placed and a node can take yet another.

// parked is the classes of parked Pods. Classes whose Pods have left the queue by another way go at the next look.
type parked struct {
	// anywhere is the classes that may go to any node.
	anywhere map[class.ID]*class.Class
	// pinned is the classes that confine themselves by name, by the names and hostnames. Nothing but an event of such a
	// node can help them.
	pinned map[string]map[class.ID]*class.Class
	// left is set when a Pod left the queue that may have been woken in place of another.
	left bool
}

// park puts away a Pod that no node can take.
func (y *Cycle) park(p *pod, now time.Time) {
	y.queue.Park(&p.Entry, now)
	names := pinNames(p.class)
	if names == nil {
		y.parked.anywhere[p.class.ID] = p.class
	}
	for _, name := range names {
		if y.parked.pinned[name] == nil {
			y.parked.pinned[name] = map[class.ID]*class.Class{}
		}
		y.parked.pinned[name][p.class.ID] = p.class
	}
}

// unpark takes a Pod out of the queue for good, or before its class changes.
func (y *Cycle) unpark(p *pod) {
	if place, _, _ := p.Place(); place == queue.Active || place == queue.Backoff {
		y.parked.left = true
	}
	y.queue.Remove(&p.Entry)
	if p.class == nil || y.queue.HasParked(p.class.ID) {
		return
	}
	for _, name := range pinNames(p.class) {
		delete(y.parked.pinned[name], p.class.ID)
		if len(y.parked.pinned[name]) == 0 {
			delete(y.parked.pinned, name)
		}
	}
}

// wakeGained wakes Pods for the nodes that may have become better since the last call.
func (y *Cycle) wakeGained(now time.Time) {
	gains := y.state.TakeGains()
	if len(gains) == 0 && !y.parked.left {
		return
	}
	y.parked.left = false
	y.wakeAmong(y.parked.anywhere, now)
	if len(y.parked.pinned) == 0 {
		return
	}
	for _, slot := range gains {
		for _, name := range y.names(slot) {
			y.wakeAmong(y.parked.pinned[name], now)
		}
	}
}

func (y *Cycle) wakeAmong(classes map[class.ID]*class.Class, now time.Time) {
	for id, c := range classes {
		if !y.queue.HasParked(id) {
			delete(classes, id)
			continue
		}
		y.wakeMore(c, now)
	}
}

// wakeMore wakes the next parked Pod of a class if there is a node for it.
func (y *Cycle) wakeMore(c *class.Class, now time.Time) {
	if y.queue.HasParked(c.ID) && c.Feasible(y.state) > 0 {
		y.queue.Wake(c.ID, now)
	}
}

// names returns the name and the hostname of a node, if it is there.
func (y *Cycle) names(slot columns.Slot) []string {
	if !y.state.Known(slot) {
		return nil
	}
	names := []string{y.state.Name(slot)}
	if host, ok := y.state.Hostname(slot); ok && host != names[0] {
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
