package cycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// setPending takes over a Pod that has no node.
func (c *Cycle) setPending(o *corev1.Pod, now time.Time) {
	profile := c.profiles[SchedulerName(o)]
	if profile == nil {
		return // another scheduler's
	}
	p := c.pods[o.UID]
	if p == nil {
		if _, taken := c.state.PodNode(o.UID); taken {
			return // an old event of a Pod that was seen bound
		}
		p = &pod{profile: profile}
		p.UID, p.gang = o.UID, c.gangs.join(p, o)
		c.pods[o.UID] = p
	}
	c.nominations.follow(p, o)
	c.byName[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o.UID
	if !p.placed() {
		c.book.Wait(o)
		c.devices.Wait(o)
	}
	if p.placed() {
		p.object = o
		c.classification.carry(o, c.classification.asks(p.profile, o)...)
		c.state.SetPod(o, p.node, p.class.Pod.Usage)
		return // on its way; what it took stays reserved
	}
	c.enqueue(p, o, now)
}

// enqueue puts a Pod without a node where it belongs. A Pod that changed in what rules read is tried at once; any other
// change leaves it where it is.
func (c *Cycle) enqueue(p *pod, o *corev1.Pod, now time.Time) {
	changed := c.classification.classify(p, o)
	c.nominations.set(p, p.nominated)
	if p.gang != nil {
		if changed {
			c.gangs.enqueue(p.gang, now)
		}
		return
	}
	if changed && p.waits() && c.leading[p.profile.Name] {
		c.queue.Add(&p.Entry, now)
	}
}

// Failed notes that a Pod could not be bound. It gives the room back, and the Pod is tried again after a delay.
func (c *Cycle) Failed(uid types.UID, now time.Time) {
	p := c.pods[uid]
	if p == nil || !p.placed() {
		return // seen bound, or deleted, meanwhile
	}
	c.placement.unassign(p)
	switch {
	case p.gang != nil:
		if c.gangs.ready(p.gang) {
			c.queue.Delay(&p.gang.Entry, now)
		}
	case p.waits() && c.leading[p.profile.Name]:
		c.queue.Delay(&p.Entry, now)
	}
}

// forget drops a Pod that waits no longer.
func (c *Cycle) forget(uid types.UID) {
	p := c.pods[uid]
	if p == nil {
		return
	}
	c.unschedulable.remove(p)
	c.nominations.set(p, "")
	c.classes.Leave(p.class)
	c.book.Forget(uid)
	c.devices.Forget(uid)
	delete(c.pods, uid)
	c.gangs.part(p)
	name := types.NamespacedName{Namespace: p.object.Namespace, Name: p.object.Name}
	if c.byName[name] == uid {
		delete(c.byName, name)
	}
}
