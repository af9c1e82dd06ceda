// Package cycle is the scheduler without its input and output: it takes what happened to nodes and Pods and says, Pod
// by Pod, on which node each goes or why on none. A Pod to which the API shows no node is in one phase:
//
//	                             an extender has a say
//	gated <---> pending -----------------------------------> asking
//	  gates      ^ | ^ <------------- it answered ------------
//	             | | |
//	             | | +--- its victims go, or are spared ------
//	  room is    | +----------- others make room ----------> evicting
//	  kept for   |
//	  it, or     | a node
//	  no more    | +-------> assumed -------------> claiming: on its node until its claims are bound
//	             v | <-------- not bound <----------
//	         nominated
//
// Nominated is pending but for the room that is kept: what leads from and to the one leads from and to the other. What
// the API shows ends each phase: the Pod has its node, or is gone.
//
// The package is pure. Time is an argument, chance a seed, and one goroutine owns a Cycle.
package cycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/kit/backoff"
	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/devices"
	"keelson.dev/services/scheduler/internal/groups"
	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/volumes"
)

// Config says how to decide.
type Config struct {
	// Profiles are the rules by spec.schedulerName.
	Profiles []rules.Profile
	// Backoff is the delay between tries of one Pod.
	Backoff backoff.Policy
	// Seed decides between nodes of equal score.
	Seed uint64
	// Extenders are the services of others that have a say.
	Extenders []schedulerv1.Extender
}

// Cycle holds all that decisions depend on. Make one with New.
type Cycle struct {
	profiles      map[string]*rules.Profile
	terms         []func(*corev1.Pod) []columns.TermSpec // of each rule, whatever the profile
	leading       map[string]bool
	state         *columns.State
	classes       *class.Set
	queue         *queue.Queue
	pods          map[types.UID]*pod // those of ours that have no node in the API
	byName        map[types.NamespacedName]types.UID
	unschedulable *unschedulable
	book          *volumes.Book
	devices       *devices.Book
	waits         waits
	groups        *groups.Book
	gangs         gangs
	relabelled    map[string]bool // namespaces whose Pods are to be looked at again
	victims       *victims
	nominations   *nominations
	left          []string // nodes that went since the last requeue
	extenders     *extenders
	resizes       map[types.NamespacedName]*corev1.Pod // Pods with a node that put off their resize
}

// pod is a Pod that waits for a node, or for the API server to note the one that it was given.
type pod struct {
	queue.Entry
	object  *corev1.Pod
	profile *rules.Profile
	class   *class.Class
	phase   phase
	unread  bool       // its claims have changed since its class was found
	stale   bool       // a term that selects it was placed or dropped since its class was found
	node    string     // the node it was given
	claims  *wait      // of a Pod that was given a node, what its claims wait for; nil when it waits for none
	last    *Verdict   // of the last try
	gang    *gangState // that of the PodGroup that it names; nil for a Pod that is scheduled alone
	told    tally      // as what it counts there
	nominee
	extended
}

// New returns a Cycle that knows no node and no Pod, and leads no profile.
func New(config Config) *Cycle {
	c := &Cycle{
		profiles:   map[string]*rules.Profile{},
		leading:    map[string]bool{},
		state:      columns.New(config.Seed),
		classes:    class.NewSet(),
		queue:      queue.New(config.Backoff),
		pods:       map[types.UID]*pod{},
		byName:     map[types.NamespacedName]types.UID{},
		book:       volumes.New(),
		devices:    devices.New(),
		groups:     groups.New(),
		gangs:      newGangs(),
		relabelled: map[string]bool{},
		resizes:    map[types.NamespacedName]*corev1.Pod{},
	}
	for i := range config.Profiles {
		c.profiles[config.Profiles[i].Name] = &config.Profiles[i]
	}
	c.terms = termsOf(config.Profiles)
	c.victims = newVictims(c.state)
	c.nominations = newNominations(c.state, c.book, c.victims)
	c.extenders = newExtenders(config.Extenders, c.nominations, c.queue)
	c.unschedulable = newUnschedulable(c.nominations, c.queue, c.pods)
	return c
}

// State returns the cluster as decisions see it. The caller must not change it.
func (c *Cycle) State() *columns.State { return c.state }

// SetNode notes a node that is new or changed.
func (c *Cycle) SetNode(n *corev1.Node) { c.state.SetNode(n) }

// RemoveNode notes that a node is gone.
func (c *Cycle) RemoveNode(name string) {
	c.state.RemoveNode(name)
	c.left = append(c.left, name)
}

// SetPod notes a Pod that is new or changed. The object must not change afterwards.
func (c *Cycle) SetPod(p *corev1.Pod, now time.Time) {
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		c.RemovePod(p)
	case p.Spec.NodeName != "":
		c.settleInGang(p)
		c.forget(p.UID)
		c.carry(p)
		c.state.SetPod(p, p.Spec.NodeName, c.state.Usage(p))
		if p.DeletionTimestamp != nil {
			c.victims.spare(p.UID)
		}
		c.watchResize(p)
		c.book.Use(p, p.Spec.NodeName)
	case p.DeletionTimestamp != nil:
		c.RemovePod(p)
	default:
		c.setPending(p, now)
	}
}

// RemovePod notes that a Pod is gone, or takes no room any more.
func (c *Cycle) RemovePod(p *corev1.Pod) {
	c.forget(p.UID)
	c.leaveGang(p.UID)
	c.state.RemovePod(p.UID)
	c.state.Carry(p.UID, nil)
	c.book.Forget(p.UID)
	c.victims.forget(p.UID)
	c.forgetResize(p)
}

// Lead says whether this process decides for a profile. Pods of a profile that it does not lead are held.
func (c *Cycle) Lead(profile string, leads bool, now time.Time) {
	if c.leading[profile] == leads {
		return
	}
	c.leading[profile] = leads
	if !leads {
		c.giveUpWaits(profile)
	}
	var held []*pod
	for _, p := range c.pods {
		if p.profile.Name == profile && p.waits() && p.gang == nil {
			held = append(held, p)
		}
	}
	slices.SortFunc(held, older)
	for _, p := range held {
		if leads {
			c.queue.Add(&p.Entry, now)
		} else {
			c.queue.Remove(&p.Entry)
		}
	}
	c.leadGangs(profile, now)
}

// older orders Pods as they were created, so that a new leader goes on where the old one stopped.
func older(a, b *pod) int {
	if c := a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time); c != 0 {
		return c
	}
	if a.object.UID < b.object.UID {
		return -1
	}
	return 1
}

// Next decides for the most urgent Pod. A Pod that gets a node takes room there from now on, until the API shows it
// bound or Failed says that it was not. It returns false when no Pod is to be tried now.
func (c *Cycle) Next(now time.Time) (Verdict, bool) {
	c.catchUp(now)
	if v, ok := c.nextDecided(); ok {
		return v, true
	}
	c.extenders.releaseLines(now)
	for {
		e, ok := c.queue.Pop(now)
		if !ok {
			return Verdict{}, false
		}
		if p := c.pods[e.UID]; p != nil {
			if c.extenders.hold(p, now) {
				continue
			}
			c.reread(p)
			return c.conclude(p, c.decide(p, now), now), true
		}
		c.decideGang(c.gangs.byUID[e.UID], now)
		if v, ok := c.nextDecided(); ok {
			return v, true
		}
	}
}

// catchUp takes in what happened since the last decision.
func (c *Cycle) catchUp(now time.Time) {
	c.check()
	c.readGroups(now)
	c.rekey()
	c.readClaims(now)
	c.requeueGained(now)
}

// conclude takes over what was decided for a Pod.
func (c *Cycle) conclude(p *pod, v Verdict, now time.Time) Verdict {
	p.last = &v
	if v.Question != nil {
		c.extenders.ask(p, v.Question)
		return v
	}
	if v.Node == "" {
		if p.phase != evicting {
			c.unschedulable.put(p, now)
		}
		return v
	}
	v.Steps = c.assign(p, v.Node)
	c.displaceAcross(p, now)
	c.unschedulable.requeueMore(p.class, now)
	return v
}

// assign gives the Pod its node, and returns what its claims get.
func (c *Cycle) assign(p *pod, node string) []volumes.Step {
	p.node = node
	p.enter(assumed)
	c.state.SetPod(p.object, node, p.class.Pod.Usage)
	c.nominations.set(p, "")
	steps := c.take(p)
	c.book.Moved(c.state)
	return steps
}

// Failed notes that a Pod could not be bound. It gives the room back, and the Pod is tried again after a delay.
func (c *Cycle) Failed(uid types.UID, now time.Time) {
	p := c.pods[uid]
	if p == nil || !p.placed() {
		return // seen bound, or deleted, meanwhile
	}
	c.giveUp(p)
	switch {
	case p.gang != nil:
		if c.ready(p.gang) {
			c.queue.Delay(&p.gang.Entry, now)
		}
	case p.waits() && c.leading[p.profile.Name]:
		c.queue.Delay(&p.Entry, now)
	}
}

// Unschedulable returns the newest version of a Pod that found no node at the last try, and what its status should say.
func (c *Cycle) Unschedulable(uid types.UID) (*corev1.Pod, corev1.PodCondition, bool) {
	p := c.pods[uid]
	if p == nil || !p.waits() && p.phase != gated {
		return nil, corev1.PodCondition{}, false
	}
	if p.last == nil || p.last.Node != "" {
		return c.heldByGroup(p)
	}
	condition := p.last.Condition()
	condition.ObservedGeneration = p.object.Generation
	return p.object, condition, true
}

// NextTime returns when Next may have something to decide though nothing happens; false when only events bring some.
func (c *Cycle) NextTime(now time.Time) (time.Time, bool) {
	if len(c.gangs.decided) > 0 {
		return now, true
	}
	at, ok := c.queue.Next(now)
	if until := c.claimsTime(); !until.IsZero() && (!ok || until.Before(at)) {
		return until, true
	}
	return at, ok
}

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
		c.carry(o, c.asks(p.profile, o)...)
		c.state.SetPod(o, p.node, p.class.Pod.Usage)
		return // on its way; what it took stays reserved
	}
	c.enqueue(p, o, now)
}

// enqueue puts a Pod without a node where it belongs. A Pod that changed in what rules read is tried at once; any other
// change leaves it where it is.
func (c *Cycle) enqueue(p *pod, o *corev1.Pod, now time.Time) {
	changed := c.classify(p, o)
	c.nominations.set(p, p.nominated)
	if p.gang != nil {
		if changed {
			c.queueGang(p.gang, now)
		}
		return
	}
	if changed && p.waits() && c.leading[p.profile.Name] {
		c.queue.Add(&p.Entry, now)
	}
}

// classify takes over the newest version of a Pod without a node and reports whether it changed in what rules read.
// Then it is nowhere in the queue.
func (c *Cycle) classify(p *pod, o *corev1.Pod) bool {
	joined := c.join(p.profile, o)
	if p.class != nil {
		c.classes.Leave(p.class)
	}
	changed := p.class != joined || isGated(p.object) != isGated(o)
	if changed {
		c.unschedulable.remove(p)
		p.last, p.answer = nil, nil
	}
	p.object, p.class, p.unread, p.stale = o, joined, false, false
	if p.waits() || p.phase == gated {
		p.rest()
	}
	p.asks = c.extenders.asked(o)
	p.Class, p.Priority = joined.ID, columns.Priority(o)
	return changed
}

func isGated(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }

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
	c.part(p)
	name := types.NamespacedName{Namespace: p.object.Namespace, Name: p.object.Name}
	if c.byName[name] == uid {
		delete(c.byName, name)
	}
}

func (c *Cycle) decide(p *pod, now time.Time) Verdict {
	v := c.verdict(p)
	c.classes.Touch(p.class, c.state)
	defer c.nominations.hold(p)()
	if c.extenders.consult(p, &v) {
		return v
	}
	if c.nominations.take(p, &v) {
		return v
	}
	choice, left, ok := c.nominations.best(p)
	if !ok && left > 0 {
		v.Reasons = append(p.class.Refusals(c.state), class.Reason{Text: kept, Nodes: left})
		return v
	}
	if !ok {
		if c.outrank(p, c.nominations.nodesReservedBelow(p), &v, now) {
			return v
		}
		v.Reasons = p.class.Refusals(c.state)
		c.preempt(p, &v, now)
		return v
	}
	v.Node, v.Score, v.Feasible = c.state.Name(choice.Slot), choice.Score, choice.Feasible
	return v
}

// verdict begins the outcome of a try.
func (c *Cycle) verdict(p *pod) Verdict {
	return Verdict{Pod: p.object, Nodes: c.state.Nodes(), Attempt: p.Attempts + 1, Arrived: p.Arrived()}
}

// SchedulerName is the name of the profile that a Pod asks for.
func SchedulerName(p *corev1.Pod) string {
	if p.Spec.SchedulerName == "" {
		return corev1.DefaultSchedulerName
	}
	return p.Spec.SchedulerName
}
