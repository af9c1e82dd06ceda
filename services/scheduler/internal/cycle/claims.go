package cycle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/volumes"
)

// A Pod that is given a node while claims of it have no volume goes on in two steps: what its claims get is written,
// and when the API shows all of them bound, so is the Pod. Meanwhile it takes its room, and others go on.

// wait is since when and until when a Pod waits for its claims.
type wait struct{ since, until time.Time }

// waits are the Pods that wait for their claims.
type waits struct {
	order   []types.UID // the one that waits longest first; may name Pods that wait no longer
	settled []Settled
}

// Settled is a Pod whose wait for its claims is over.
type Settled struct {
	Pod  *corev1.Pod
	Node string
	// Since is when the wait began, Err why it was vain. Then Failed has been called for it.
	Since time.Time
	Err   error
	// Attempt and Arrived are those of the Verdict that gave it its node.
	Attempt int
	Arrived time.Time
}

// SetClaim notes a claim that is new or changed.
func (c *Cycle) SetClaim(claim *corev1.PersistentVolumeClaim) { c.book.SetClaim(claim) }

// RemoveClaim notes that a claim is gone.
func (c *Cycle) RemoveClaim(claim *corev1.PersistentVolumeClaim) { c.book.RemoveClaim(claim) }

// SetDeviceClaim notes a ResourceClaim that is new or changed.
func (c *Cycle) SetDeviceClaim(claim *resourcev1.ResourceClaim) { c.devices.SetClaim(claim) }

// RemoveDeviceClaim notes that a ResourceClaim is gone.
func (c *Cycle) RemoveDeviceClaim(claim *resourcev1.ResourceClaim) { c.devices.RemoveClaim(claim) }

// SetVolume notes a PersistentVolume that is new or changed.
func (c *Cycle) SetVolume(pv *corev1.PersistentVolume) { c.book.SetVolume(pv) }

// RemoveVolume notes that a PersistentVolume is gone.
func (c *Cycle) RemoveVolume(pv *corev1.PersistentVolume) { c.book.RemoveVolume(pv) }

// SetClass notes a StorageClass that is new or changed.
func (c *Cycle) SetClass(class *storagev1.StorageClass) { c.book.SetClass(class) }

// RemoveClass notes that a StorageClass is gone.
func (c *Cycle) RemoveClass(name string) { c.book.RemoveClass(name) }

// SetVolumeLimits notes which CSI drivers a node has and how many volumes of each it takes.
func (c *Cycle) SetVolumeLimits(n *storagev1.CSINode) {
	drivers, limits := volumes.Drivers(n)
	c.state.SetDrivers(n.Name, drivers, limits)
}

// RemoveVolumeLimits notes that a node has no driver and takes any number of volumes.
func (c *Cycle) RemoveVolumeLimits(node string) { c.state.SetDrivers(node, nil, nil) }

// SetAttachment notes a VolumeAttachment that is new or changed.
func (c *Cycle) SetAttachment(a *storagev1.VolumeAttachment) { c.book.SetAttachment(a) }

// RemoveAttachment notes that a VolumeAttachment is gone.
func (c *Cycle) RemoveAttachment(name string) { c.book.RemoveAttachment(name) }

// SetDriver notes a CSIDriver that is new or changed.
func (c *Cycle) SetDriver(d *storagev1.CSIDriver) { c.book.SetDriver(d) }

// RemoveDriver notes that a CSIDriver is gone.
func (c *Cycle) RemoveDriver(name string) { c.book.RemoveDriver(name) }

// SetStorage notes a CSIStorageCapacity that is new or changed.
func (c *Cycle) SetStorage(s *storagev1.CSIStorageCapacity) {
	c.state.SetStorage(storageName(s), volumes.SegmentOf(s))
}

// RemoveStorage notes that a CSIStorageCapacity is gone.
func (c *Cycle) RemoveStorage(s *storagev1.CSIStorageCapacity) {
	c.state.SetStorage(storageName(s), nil)
}

func storageName(s *storagev1.CSIStorageCapacity) string { return s.Namespace + "/" + s.Name }

// dropWaits takes the nodes from the Pods that wait for claims, once this process no longer leads their profile. The
// next leader goes on from what the claims say.
func (c *Cycle) dropWaits(profile string) {
	for _, p := range c.pods {
		if p.profile.Name == profile && p.phase == claiming {
			c.placement.unassign(p)
		}
	}
}

// Await notes that what the claims of a Pod get has been written: it waits until the API shows them bound.
func (c *Cycle) Await(uid types.UID, now time.Time) {
	p := c.pods[uid]
	if p == nil || !p.placed() {
		return // deleted meanwhile
	}
	if !c.leading[p.profile.Name] {
		c.placement.unassign(p)
		return
	}
	p.claims = &wait{since: now, until: now.Add(p.profile.BindTimeout)}
	p.enter(claiming)
	c.waits.order = append(c.waits.order, uid)
	c.settle(p, now)
}

// settle ends the wait of a Pod when its claims are bound or when the wait is vain.
func (c *Cycle) settle(p *pod, now time.Time) {
	done, err := c.book.Check(p.object, c.placement.nodeOf(p))
	if err == nil && !done && !now.Before(p.claims.until) {
		err = errors.New("timed out waiting for persistentvolumeclaims to be bound: " +
			strings.Join(c.book.Waiting(p.object), ", "))
	}
	if err == nil && !done {
		return
	}
	settled := Settled{Pod: p.object, Node: p.node, Since: p.claims.since, Err: err}
	if p.last != nil {
		settled.Attempt, settled.Arrived = p.last.Attempt, p.last.Arrived
	}
	c.waits.settled = append(c.waits.settled, settled)
	p.claims = nil
	p.enter(assumed)
	c.book.Release(p.UID) // bound is bound
	if err != nil {
		if p.last != nil {
			p.last.Vain = err.Error()
		}
		c.Failed(p.UID, now)
	}
}

// NextSettled returns the next Pod whose wait for its claims is over; false when there is none now.
func (c *Cycle) NextSettled(now time.Time) (Settled, bool) {
	c.readClaims(now)
	for len(c.waits.order) > 0 {
		p := c.pods[c.waits.order[0]]
		if p != nil && p.phase == claiming {
			if now.Before(p.claims.until) {
				break
			}
			c.settle(p, now)
		}
		c.waits.order = c.waits.order[1:]
	}
	if len(c.waits.settled) == 0 {
		return Settled{}, false
	}
	next := c.waits.settled[0]
	c.waits.settled = c.waits.settled[1:]
	return next, true
}

// claimsTime returns when a wait for claims ends at the latest; zero when none is waited for.
func (c *Cycle) claimsTime() time.Time {
	for _, uid := range c.waits.order {
		if p := c.pods[uid]; p != nil && p.phase == claiming {
			return p.claims.until
		}
	}
	return time.Time{}
}

// readClaims looks again at the Pods whose claims, or what they may get, have changed. Those that are active are looked
// at when their turn comes.
func (c *Cycle) readClaims(now time.Time) {
	c.book.Moved(c.state)
	stale := append(c.book.TakeStale(), c.devices.TakeStale()...)
	if len(stale) == 0 {
		return
	}
	slices.Sort(stale)
	for _, uid := range stale {
		p := c.pods[uid]
		switch {
		case p == nil:
		case p.phase == claiming:
			c.settle(p, now)
		case !p.placed():
			if place, _, _ := p.Place(); place == queue.Active {
				p.unread = true
			} else {
				c.enqueue(p, p.object, now)
			}
		}
	}
}

// explainClaims says what a Pod waits for that has its node.
func (c *Cycle) explainClaims(p *pod) Explanation {
	waiting := strings.Join(c.book.Waiting(p.object), ", ")
	facts := []Fact{{Time: p.claims.since, Reason: "WaitingForClaims", Message: "persistentvolumeclaims without a " +
		"volume: " + waiting}}
	facts = append(facts, c.explainUnmade(p)...)
	return Explanation{
		Summary: fmt.Sprintf("waits on node %s for its claims to be bound: %s", p.node, waiting),
		Facts:   append(facts, Fact{Time: p.claims.until, Reason: "Retry", Message: "is given another try then"}),
	}
}

// explainUnmade says which claims of the Pod wait for a provisioner to make a volume.
func (c *Cycle) explainUnmade(p *pod) (facts []Fact) {
	for _, says := range c.book.Unmade(p.object) {
		facts = append(facts, Fact{Reason: "VolumeMissing", Message: says})
	}
	return facts
}

// explainVain says that the Pod had a node and waited there for its claims in vain.
func explainVain(p *pod, at time.Time) []Fact {
	if p.last == nil || p.last.Vain == "" {
		return nil
	}
	return []Fact{{Time: at, Reason: "ClaimsNotBound", Message: fmt.Sprintf("it waited on node %s for its claims in "+
		"vain: %s", p.last.Node, p.last.Vain)}}
}
