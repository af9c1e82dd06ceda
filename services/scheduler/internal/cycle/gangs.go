package cycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/gang"
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
	refused string                    // why the last try failed
	domains []*class.Class            // those of its Pods that look at domains, after a try that failed
	evicted *corev1.Pod               // one of its Pods, when they were chosen as victims together
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
	c.shrink(g)
	c.gangs.discard(g)
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
	if s.placed[p.UID] == nil {
		c.gangs.spoken[s] = true
	}
	c.gangs.of[p.UID], s.placed[p.UID] = s, p
}

// leaveGang notes that a Pod with a node counts no longer.
func (c *Cycle) leaveGang(uid types.UID) {
	if s := c.gangs.of[uid]; s != nil {
		delete(s.placed, uid)
		delete(c.gangs.of, uid)
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
	s.waiting[o.UID] = p
	return s
}

// part notes that a Pod without a node is one no longer.
func (c *Cycle) part(p *pod) {
	if p.gang == nil {
		return
	}
	delete(p.gang.waiting, p.UID)
	c.shrink(p.gang)
	c.gangs.discard(p.gang)
}

// count says how many Pods the group has.
func (g *gangState) count() gang.Count {
	n := gang.Count{Placed: len(g.placed)}
	for _, p := range g.waiting {
		switch {
		case p.node != "":
			n.Placed++
		case p.gated:
			n.Gated++
		default:
			n.Waiting++
		}
	}
	return n
}

// members returns the Pods that are to be given nodes, in the order in which they are tried.
func (g *gangState) members() (members []*pod) {
	for _, p := range g.waiting {
		if p.node == "" && !p.gated {
			members = append(members, p)
		}
	}
	slices.SortFunc(members, older)
	return members
}

// evicting reports whether room is being made for a Pod of the group.
func (g *gangState) evicting() bool {
	for _, p := range g.waiting {
		if p.evicting {
			return true
		}
	}
	return false
}

// profile returns the profile of the group's Pods without a node; nil when there are none.
func (g *gangState) profile() *rules.Profile {
	for _, p := range g.waiting {
		return p.profile
	}
	return nil
}

// ready reports whether the group can be tried.
func (c *Cycle) ready(g *gangState) bool {
	profile, n := g.profile(), g.count()
	return profile != nil && c.leading[profile.Name] && n.Waiting > 0 && !g.evicting() &&
		gang.Held(g.group, g.name, n) == ""
}

// queueGang has the group tried at once, or not at all while it waits for something else.
func (c *Cycle) queueGang(g *gangState, now time.Time) {
	if c.ready(g) {
		c.queue.Add(&g.Entry, now)
	} else {
		c.queue.Remove(&g.Entry)
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
	for _, p := range c.withdraw(g) {
		p.last = &Verdict{Pod: p.object, Nodes: c.state.Nodes(), Group: held}
		c.gangs.decided = append(c.gangs.decided, *p.last)
	}
}

// withdraw keeps no room for Pods of the group any more, and returns those for which some was kept.
func (c *Cycle) withdraw(g *gangState) (pods []*pod) {
	for _, p := range g.members() {
		if p.nominated != "" {
			c.nominate(p, "")
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
// waited for nothing else.
func (c *Cycle) resumeNominees(g *gangState, now time.Time) {
	members := g.members()
	switch {
	case c.fitTogether(members):
		c.queue.Activate(&g.Entry, now)
	case !slices.ContainsFunc(members, c.awaitsVictims):
		c.queue.Resume(&g.Entry, now)
	}
}

// fitTogether reports whether all of these Pods fit now where room is kept for them. It leaves no trace.
func (c *Cycle) fitTogether(members []*pod) bool {
	mark := c.state.Gains()
	var placed []given
	for _, p := range members {
		one := given{pod: p, nominated: p.nominated}
		if !c.takeNomination(p, &one.verdict) {
			break
		}
		c.assign(p, one.verdict.Node)
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
		p.evicting = p.evicting && v.Plan == nil
		return true
	})
	for _, g := range c.gangs.byUID {
		if p := g.profile(); p != nil && p.Name == profile {
			c.gangs.spoken[g] = true
			c.queueGang(g, now)
		}
	}
}

// nextDecided returns the next verdict upon a Pod of a group; one that has been overtaken is left out.
func (c *Cycle) nextDecided() (Verdict, bool) {
	for len(c.gangs.decided) > 0 {
		v := c.gangs.decided[0]
		c.gangs.decided = c.gangs.decided[1:]
		if p := c.pods[v.Pod.UID]; p != nil && p.node == v.Node && !p.gated {
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
		c.preemption.stays(victim.UID)
		c.state.Note(victim.UID)
	}
}
