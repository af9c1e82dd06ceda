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
//
//keelson:decision
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
	profiles map[string]*rules.Profile
	leading  map[string]bool
	state    *columns.State
	queue    *queue.Queue
	pods     map[types.UID]*pod // those of ours that have no node in the API
	byName   map[types.NamespacedName]types.UID
	book     *volumes.Book
	devices  *devices.Book
	groups   *groups.Book

	// Each of these knows those above it, and none of them the Cycle.
	victims        *victims
	nominations    *nominations
	extenders      *extenders
	unschedulable  *unschedulable
	classes        *class.Set
	classification *classification
	placement      *placement
	gangs          *gangs

	waits      waits
	relabelled map[string]bool                      // namespaces whose Pods are to be looked at again
	left       []string                             // nodes that went since the last requeue
	resizes    map[types.NamespacedName]*corev1.Pod // Pods with a node that put off their resize
}

// New returns a Cycle that knows no node and no Pod, and leads no profile.
func New(config Config) *Cycle {
	c := &Cycle{
		profiles:   map[string]*rules.Profile{},
		leading:    map[string]bool{},
		state:      columns.New(config.Seed),
		queue:      queue.New(config.Backoff),
		pods:       map[types.UID]*pod{},
		byName:     map[types.NamespacedName]types.UID{},
		book:       volumes.New(),
		devices:    devices.New(),
		groups:     groups.New(),
		classes:    class.NewSet(),
		relabelled: map[string]bool{},
		resizes:    map[types.NamespacedName]*corev1.Pod{},
	}
	for i := range config.Profiles {
		c.profiles[config.Profiles[i].Name] = &config.Profiles[i]
	}
	c.victims = newVictims(c.state)
	c.nominations = newNominations(c.state, c.book, c.victims)
	c.extenders = newExtenders(config.Extenders, c.nominations, c.queue)
	c.unschedulable = newUnschedulable(c.nominations, c.queue, c.pods)
	c.classification = &classification{state: c.state, classes: c.classes, terms: termsOf(config.Profiles),
		book: c.book, devices: c.devices, groups: c.groups, pods: c.pods, extenders: c.extenders,
		unschedulable: c.unschedulable}
	c.placement = &placement{state: c.state, book: c.book, classification: c.classification,
		nominations: c.nominations}
	c.gangs = newGangs(newGangSearch(c.placement), c.leading)
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
		c.gangs.settle(p)
		c.forget(p.UID)
		c.classification.carry(p)
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
	c.gangs.leave(p.UID)
	c.state.RemovePod(p.UID)
	c.state.Carry(p.UID, nil)
	c.book.Forget(p.UID)
	c.victims.forget(p.UID)
	c.forgetResize(p)
}

// Lead notes whether this process decides for a profile. The queue holds Pods of a profile that it does not lead.
func (c *Cycle) Lead(profile string, leads bool, now time.Time) {
	if c.leading[profile] == leads {
		return
	}
	c.leading[profile] = leads
	if !leads {
		c.dropWaits(profile)
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
	c.gangs.lead(profile, now)
}

// Next decides for the most urgent Pod. A Pod that gets a node takes room there from now on, until the API shows it
// bound or Failed says that it was not. It returns false when no Pod is to be tried now.
func (c *Cycle) Next(now time.Time) (Verdict, bool) {
	c.catchUp(now)
	if v, ok := c.gangs.nextDecided(); ok {
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
			c.classification.reread(p)
			return c.conclude(p, c.decide(p, now), now), true
		}
		c.gangs.decide(c.gangs.byUID[e.UID], now)
		if v, ok := c.gangs.nextDecided(); ok {
			return v, true
		}
	}
}

// Unschedulable returns the newest version of a Pod that found no node at the last try, and what its status should say.
func (c *Cycle) Unschedulable(uid types.UID) (*corev1.Pod, corev1.PodCondition, bool) {
	p := c.pods[uid]
	if p == nil || !p.waits() && p.phase != gated {
		return nil, corev1.PodCondition{}, false
	}
	if p.last == nil || p.last.Node != "" {
		return c.gangs.held(p)
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
