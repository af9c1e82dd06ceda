package cycle

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/queue"
)

// Which event requeues which unschedulable Pod: one after which some node can take a Pod of its class. So it is not the
// kind of the event that counts (a node added, enlarged, relabelled, untainted or uncordoned; a Pod gone, finished, or
// not bound after all) but whether the node that it concerns passes the filters now. Only as many Pods are requeued as
// get a node, the most urgent first: one, and the next when that one was placed and a node can take yet another.

// unschedulable is the unschedulable Pods, by their classes. Classes whose Pods have left by another way go at
// the next look.
type unschedulable struct {
	state       *columns.State
	queue       *queue.Queue
	nominations *nominations
	pods        map[types.UID]*pod // all of ours to which the API shows no node

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

func newUnschedulable(n *nominations, q *queue.Queue, pods map[types.UID]*pod) *unschedulable {
	return &unschedulable{
		state: n.state, queue: q, nominations: n, pods: pods,
		anywhere: map[class.ID]*class.Class{},
		pinned:   map[string]map[class.ID]*class.Class{},
		domains:  map[class.ID]*class.Class{},
		again:    map[class.ID]*class.Class{},
	}
}

// put puts away a Pod that no node can take.
func (u *unschedulable) put(p *pod, now time.Time) {
	u.queue.AddUnschedulable(&p.Entry, now)
	u.note(p.class)
}

// note notes a class that has unschedulable Pods.
func (u *unschedulable) note(waiting *class.Class) {
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

// remove takes a Pod out of the queue for good, or before its class changes.
func (u *unschedulable) remove(p *pod) {
	u.mayLeaveRoom(p)
	u.queue.Remove(&p.Entry)
	if p.class == nil || u.queue.HasUnschedulable(p.class.ID) {
		return
	}
	for _, name := range pinNames(p.class) {
		delete(u.pinned[name], p.class.ID)
		if len(u.pinned[name]) == 0 {
			delete(u.pinned, name)
		}
	}
}

// mayLeaveRoom sees to it that the others of its class are looked at again when a Pod that may have been requeued in
// place of them leaves the class.
func (u *unschedulable) mayLeaveRoom(p *pod) {
	if place, _, _ := p.Place(); place == queue.Active || place == queue.Backoff {
		u.again[p.class.ID] = p.class
	}
}

// reclass notes that a Pod is of another class now. Where it stands in the queue it stays.
func (u *unschedulable) reclass(p *pod, to *class.Class) {
	u.again[p.class.ID] = p.class // it may have been requeued in place of another
	p.class = to
	u.queue.Reclass(&p.Entry, to.ID)
	if u.queue.HasUnschedulable(to.ID) {
		u.note(to)
		u.again[to.ID] = to
	}
}

// lookAgain requeues Pods of the classes to be looked at though nothing became better.
func (u *unschedulable) lookAgain(now time.Time) {
	u.requeueAmong(u.again, now)
	clear(u.again)
}

// requeueOfDomains requeues Pods for domains that may have become better since the last call.
func (u *unschedulable) requeueOfDomains(now time.Time) {
	for _, waiting := range u.domains {
		if !u.queue.HasUnschedulable(waiting.ID) {
			delete(u.domains, waiting.ID)
		} else if waiting.DomainsChanged() {
			u.requeueMore(waiting, now)
		}
	}
}

// requeueFor requeues Pods for nodes that may have become better.
func (u *unschedulable) requeueFor(gains []columns.Slot, now time.Time) {
	u.requeueAcross(now)
	u.requeueAmong(u.anywhere, now)
	for _, slot := range gains {
		u.requeueAbove(slot, u.anywhere, now)
	}
	if len(u.pinned) == 0 {
		return
	}
	for _, slot := range gains {
		for _, name := range u.names(slot) {
			u.requeueAmong(u.pinned[name], now)
			u.requeueAbove(slot, u.pinned[name], now)
		}
	}
}

func (u *unschedulable) requeueAmong(classes map[class.ID]*class.Class, now time.Time) {
	for id, waiting := range classes {
		if !u.queue.HasUnschedulable(id) {
			delete(classes, id)
			continue
		}
		u.requeueMore(waiting, now)
	}
}

// requeueMore requeues the next unschedulable Pod of a class if there is a node for it.
func (u *unschedulable) requeueMore(waiting *class.Class, now time.Time) {
	if u.queue.HasUnschedulable(waiting.ID) && waiting.Feasible(u.state) > 0 {
		u.queue.Requeue(waiting.ID, now)
	}
}

// requeueAcross requeues the Pods whose victims on other nodes are gone.
func (u *unschedulable) requeueAcross(now time.Time) {
	if len(u.nominations.across) == 0 {
		return
	}
	for _, uid := range slices.Sorted(maps.Keys(u.nominations.across)) {
		p, slot := u.pods[uid], u.state.ReservedFor(uid)
		if p != nil && !p.placed() && slot != columns.None && u.nominations.fits(p, slot) {
			u.queue.Activate(&p.Entry, now)
		}
	}
}

// requeueAbove requeues, of each class, the most urgent Pod to which a node that became better may give room that Pods
// of lower priority have, or that is kept for them.
func (u *unschedulable) requeueAbove(slot columns.Slot, classes map[class.ID]*class.Class, now time.Time) {
	lowest, ok := u.state.LowestPriority()
	for _, r := range u.state.Reservations(slot) {
		lowest, ok = min(lowest, r.Priority), true
	}
	if !ok || !u.state.Known(slot) {
		return
	}
	for id := range classes {
		e := u.queue.MostUrgent(id, func(e *queue.Entry) bool {
			p := u.pods[e.UID]
			return e.Priority > lowest && p.nominated == "" && p.profile.Preempts
		})
		if e == nil {
			continue
		}
		p := u.pods[e.UID]
		asks := p.preemptor()
		if u.nominations.fitsAbove(p, slot) || !never(p.object) && u.nominations.search.Helps(asks, slot) {
			u.queue.Resume(e, now)
		}
	}
}

// names returns the name and the hostname of a node, if it is there.
func (u *unschedulable) names(slot columns.Slot) []string {
	if !u.state.Known(slot) {
		return nil
	}
	names := []string{u.state.Name(slot)}
	if host, ok := u.state.Hostname(slot); ok && host != names[0] {
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
