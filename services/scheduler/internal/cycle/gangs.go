package cycle

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/gang"
	"keelson.dev/services/scheduler/internal/preempt"
	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/rules"
)

// Pods that name a PodGroup are in the queue as one entry and are decided upon at once. What follows for each of them
// comes out of Next one by one.

// gangs are the PodGroups, and those that Pods name.
type gangs struct {
	byName map[types.NamespacedName]*gangState
	byUID  map[types.UID]*gangState // of the entry
	of     map[types.UID]*gangState // of each Pod with a node
	made   class.ID
	// decided are the verdicts that Next has not returned yet.
	decided []Verdict
	// stuck are the groups that are unschedulable, and some that are no longer.
	stuck map[*gangState]bool
	// spoken are the groups of which TakeGroupNews may have something to tell.
	spoken map[*gangState]bool
}

// gangClasses is where the numbers begin by which the queue knows groups; those of classes are below.
const gangClasses class.ID = 1 << 31

// gangState is a PodGroup with its Pods.
type gangState struct {
	queue.Entry
	name    types.NamespacedName
	group   *gang.Group // nil while there is none
	waiting map[types.UID]*pod
	placed  map[types.UID]*corev1.Pod // those to which the API shows a node
	tally                             // of those that wait
	refused string                    // why the last try failed
	domains []*class.Class            // those of its Pods that look at domains, after a try that failed
	unit    *preempt.Unit             // those with a node, where they are evicted together
	evicted *corev1.Pod               // one of its Pods, when they were chosen as victims together
	profile *rules.Profile            // of the Pod that came last
	blocker *pod                      // one that did not fit where room is kept for it, at the last look
}

// tally counts Pods of a group to which the API shows no node.
type tally struct {
	gang.Count
	evicting int // how many of them have room made for them
}

func (t *tally) add(o tally, by int) {
	t.Placed, t.Waiting, t.Gated = t.Placed+by*o.Placed, t.Waiting+by*o.Waiting, t.Gated+by*o.Gated
	t.evicting += by * o.evicting
}

// tell has the group count the Pod as it is now.
func (p *pod) tell() {
	if p.gang == nil {
		return
	}
	var now tally
	switch p.phase {
	case assumed, claiming:
		now.Placed = 1
	case gated:
		now.Gated = 1
	case evicting:
		now.Waiting, now.evicting = 1, 1
	default:
		now.Waiting = 1
	}
	p.gang.add(p.told, -1)
	p.gang.add(now, 1)
	p.told = now
}

func newGangs() gangs {
	return gangs{byName: map[types.NamespacedName]*gangState{}, byUID: map[types.UID]*gangState{},
		of: map[types.UID]*gangState{}, stuck: map[*gangState]bool{}, spoken: map[*gangState]bool{}}
}

// SetPodGroup notes a PodGroup that is new or changed. The object must not change afterwards.
func (c *Cycle) SetPodGroup(o *schedulingv1beta1.PodGroup, now time.Time) {
	g := c.gangs.get(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	before, group := g.group, gang.Of(o)
	g.group, g.Priority = &group, group.Priority
	if before == nil || before.Together != group.Together || before.Priority != group.Priority {
		c.unite(g)
	}
	c.gangs.spoken[g] = true
	if before == nil || before.Object.UID != o.UID || !before.Same(group) {
		c.queue.Remove(&g.Entry)
		g.refused, g.evicted = "", nil
		if before != nil {
			c.shrink(g)
		}
		c.queueGang(g, now)
	}
}

// RemovePodGroup notes that a PodGroup is gone. Pods of it that have no node wait for another.
func (c *Cycle) RemovePodGroup(o *schedulingv1beta1.PodGroup) {
	g := c.gangs.get(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	g.group, g.refused = nil, ""
	c.unite(g)
	c.shrink(g)
	c.gangs.discard(g)
}

// unite has the Pods of the group that have a node be evicted as the group says.
func (c *Cycle) unite(g *gangState) {
	g.unit.Dissolve()
	g.unit = nil
	if g.group == nil || !g.group.Together {
		return
	}
	g.unit = c.victims.units.New(g.group.Priority)
	for uid := range g.placed {
		g.unit.Add(uid)
	}
	for uid, p := range g.waiting {
		if p.placed() {
			g.unit.Add(uid)
		}
	}
}

func (g *gangs) get(name types.NamespacedName) *gangState {
	if known := g.byName[name]; known != nil {
		return known
	}
	g.made++
	s := &gangState{name: name, waiting: map[types.UID]*pod{}, placed: map[types.UID]*corev1.Pod{}}
	s.UID, s.Class = types.UID("podgroup "+name.String()), gangClasses+g.made
	g.byName[name], g.byUID[s.UID] = s, s
	return s
}

func (g *gangs) discard(s *gangState) {
	if s.group == nil && len(s.waiting)+len(s.placed) == 0 {
		delete(g.byName, s.name)
		delete(g.byUID, s.UID)
		delete(g.spoken, s)
	}
}

// settleInGang notes a Pod to which the API shows a node.
func (c *Cycle) settleInGang(p *corev1.Pod) {
	name, ok := gang.NameOf(p)
	if !ok || p.DeletionTimestamp != nil {
		c.leaveGang(p.UID)
		return
	}
	s := c.gangs.get(name)
	before := s.placed[p.UID]
	if before == nil {
		c.gangs.spoken[s] = true
	}
	if before == nil || !costsAlike(before, p) {
		s.unit.Add(p.UID)
	}
	c.gangs.of[p.UID], s.placed[p.UID] = s, p
}

// costsAlike reports whether it costs as much to evict the one version of a Pod as the other.
func costsAlike(a, b *corev1.Pod) bool {
	return columns.Priority(a) == columns.Priority(b) && a.Status.StartTime.Equal(b.Status.StartTime) &&
		maps.Equal(a.Labels, b.Labels)
}

// leaveGang notes that a Pod with a node counts no longer.
func (c *Cycle) leaveGang(uid types.UID) {
	if s := c.gangs.of[uid]; s != nil {
		delete(s.placed, uid)
		delete(c.gangs.of, uid)
		s.unit.Remove(uid)
		c.shrink(s)
		c.gangs.discard(s)
	}
}

// join notes a Pod without a node, whose group this returns; nil when it is scheduled alone.
func (g *gangs) join(p *pod, o *corev1.Pod) *gangState {
	name, ok := gang.NameOf(o)
	if !ok {
		return nil
	}
	s := g.get(name)
	s.waiting[o.UID], s.profile = p, p.profile
	return s
}

// part notes that a Pod without a node is one no longer.
func (c *Cycle) part(p *pod) {
	if p.gang == nil {
		return
	}
	delete(p.gang.waiting, p.UID)
	p.gang.add(p.told, -1)
	if c.gangs.of[p.UID] != p.gang {
		p.gang.unit.Remove(p.UID)
	}
	c.shrink(p.gang)
	c.gangs.discard(p.gang)
}

// count says how many Pods the group has.
func (g *gangState) count() gang.Count {
	n := g.Count
	n.Placed += len(g.placed)
	return n
}

// members returns the Pods that are to be given nodes, in the order in which they are tried.
func (g *gangState) members() (members []*pod) {
	for _, p := range g.waiting {
		if !p.placed() && p.phase != gated {
			members = append(members, p)
		}
	}
	slices.SortFunc(members, older)
	return members
}

// ready reports whether the group can be tried.
func (c *Cycle) ready(g *gangState) bool {
	n := g.count()
	return n.Waiting > 0 && c.leading[g.profile.Name] && g.evicting == 0 &&
		gang.Held(g.group, g.name, n) == ""
}

// queueGang has the group tried at once, or not at all while it waits for something else. One that was refused is tried
// after its delay: each further Pod would have all of them tried again.
func (c *Cycle) queueGang(g *gangState, now time.Time) {
	switch place, _, _ := g.Place(); {
	case !c.ready(g):
		c.queue.Remove(&g.Entry)
	case place == queue.Unschedulable:
		c.queue.Resume(&g.Entry, now)
	case place != queue.Backoff:
		c.queue.Add(&g.Entry, now)
	}
}

// shrink looks again at a group that lost something. One that cannot be tried any more leaves the queue, and where it
// lacks Pods, no room is kept for the others, which say so.
func (c *Cycle) shrink(g *gangState) {
	if c.ready(g) {
		return
	}
	c.queue.Remove(&g.Entry)
	held := gang.Held(g.group, g.name, g.count())
	if held == "" {
		return
	}
	forgetAnswers(g.members())
	for _, p := range c.withdraw(g) {
		p.last = &Verdict{Pod: p.object, Nodes: c.state.Nodes(), Group: held}
		c.gangs.decided = append(c.gangs.decided, *p.last)
	}
}

// withdraw keeps no room for Pods of the group any more, and returns those for which some was kept.
func (c *Cycle) withdraw(g *gangState) (pods []*pod) {
	for _, p := range g.members() {
		if p.nominated != "" {
			c.nominations.set(p, "")
			pods = append(pods, p)
		}
	}
	return pods
}

// resumeGangs requeues the groups for which a node may have become better, or another Pod may help.
func (c *Cycle) resumeGangs(gained bool, now time.Time) {
	for g := range c.gangs.stuck {
		if place, _, _ := g.Place(); place != queue.Unschedulable {
			delete(c.gangs.stuck, g)
			continue
		}
		if gained || slices.ContainsFunc(g.domains, (*class.Class).DomainsChanged) {
			c.queue.Resume(&g.Entry, now)
		}
	}
}

// resumeNominees requeues a group for whose Pods room is kept: at once when all of them fit there now, as they have
// waited for nothing else. Its last victims are looked for where the last were found.
func (c *Cycle) resumeNominees(g *gangState, now time.Time) {
	if p := g.blocker; p != nil && g.waiting[p.UID] == p && c.blocks(p) && c.nominations.awaitsVictims(p) {
		return
	}
	members := g.members()
	g.blocker = nil
	for _, p := range slices.Backward(members) {
		if c.blocks(p) {
			g.blocker = p
			break
		}
	}
	switch {
	case g.blocker == nil && c.fitTogether(members):
		c.queue.Activate(&g.Entry, now)
	case !slices.ContainsFunc(members, c.nominations.awaitsVictims):
		c.queue.Resume(&g.Entry, now)
	}
}

// blocks reports whether the Pod keeps its group from the places that are kept for it, whatever the others do.
func (c *Cycle) blocks(p *pod) bool {
	slot := c.state.ReservedFor(p.UID)
	return slot == columns.None || !p.class.LooksAtDomains() && !c.nominations.fits(p, slot)
}

// fitTogether reports whether all of these Pods fit now where room is kept for them. It leaves no trace.
func (c *Cycle) fitTogether(members []*pod) bool {
	mark := c.state.Gains()
	var placed []given
	for _, p := range members {
		one := given{pod: p, nominated: p.nominated}
		if !c.nominations.take(p, &one.verdict) {
			break
		}
		c.assignBeside(p, one.verdict.Node)
		placed = append(placed, one)
	}
	c.undo(members, placed, mark)
	return len(placed) == len(members)
}

// leadGangs follows the lead of a profile. What was decided and not returned yet is taken back.
func (c *Cycle) leadGangs(profile string, now time.Time) {
	c.gangs.decided = slices.DeleteFunc(c.gangs.decided, func(v Verdict) bool {
		p := c.pods[v.Pod.UID]
		if p == nil || p.profile.Name != profile {
			return false
		}
		if v.Node != "" && p.node == v.Node {
			c.giveUp(p)
		}
		c.overtaken(&v)
		if p.phase == evicting && v.Plan != nil {
			p.rest()
		}
		return true
	})
	for _, g := range c.gangs.byUID {
		if g.profile != nil && g.profile.Name == profile {
			c.gangs.spoken[g] = true
			forgetAnswers(g.members())
			c.queueGang(g, now)
		}
	}
}

// nextDecided returns the next verdict upon a Pod of a group; one that has been overtaken is left out.
func (c *Cycle) nextDecided() (Verdict, bool) {
	for len(c.gangs.decided) > 0 {
		v := c.gangs.decided[0]
		c.gangs.decided = c.gangs.decided[1:]
		if p := c.pods[v.Pod.UID]; p != nil && p.node == v.Node && p.phase != gated {
			return v, true
		}
		c.overtaken(&v)
	}
	c.gangs.decided = nil
	return Verdict{}, false
}

// overtaken spares the victims of a verdict that is not carried out.
func (c *Cycle) overtaken(v *Verdict) {
	if v.Plan == nil {
		return
	}
	for _, victim := range v.Plan.Victims {
		c.victims.spare(victim.UID)
	}
}
