package cycle

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/gang"
	"keelson.dev/services/scheduler/internal/queue"
)

// Pods that name a PodGroup are one entry in the queue, and one decision covers all of them. Next returns the verdicts
// on each of them one by one.

// gangs are the PodGroups, and those that Pods name.
type gangs struct {
	state          *columns.State
	queue          *queue.Queue
	pods           map[types.UID]*pod
	leading        map[string]bool
	victims        *victims
	nominations    *nominations
	extenders      *extenders
	unschedulable  *unschedulable
	classification *classification
	placement      *placement
	search         *gangSearch

	byName map[types.NamespacedName]*gangState
	byUID  map[types.UID]*gangState // of the entry
	of     map[types.UID]*gangState // of each Pod with a node
	made   class.ID
	// decided are the verdicts that Next has not returned yet.
	decided []Verdict
	// stuck are the groups that are unschedulable, and some that are no longer.
	stuck map[*gangState]bool
	// shrunk are the groups that lost something and can be tried.
	shrunk []*gangState
	// unreported are the groups whose conditions takeNews may have to report.
	unreported map[*gangState]bool
}

// newGangs returns gangs without any, of the profiles that are led.
func newGangs(search *gangSearch, leading map[string]bool) *gangs {
	k := search.classification
	return &gangs{
		state: search.state, queue: k.unschedulable.queue, pods: k.pods, leading: leading,
		victims: search.victims, nominations: search.nominations, extenders: search.extenders,
		unschedulable: k.unschedulable, classification: k, placement: search.placement, search: search,
		byName: map[types.NamespacedName]*gangState{}, byUID: map[types.UID]*gangState{},
		of: map[types.UID]*gangState{}, stuck: map[*gangState]bool{}, unreported: map[*gangState]bool{},
	}
}

// gangClasses is where the numbers begin by which the queue knows groups; those of classes are below.
const gangClasses class.ID = 1 << 31

// set notes a PodGroup that is new or changed. The object must not change afterwards.
func (gs *gangs) set(o *schedulingv1beta1.PodGroup, now time.Time) {
	g := gs.get(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	before, group := g.group, gang.Of(o)
	g.group, g.Priority = &group, group.Priority
	if before == nil || before.Together != group.Together || before.Priority != group.Priority {
		gs.unite(g)
	}
	gs.unreported[g] = true
	if before == nil || before.Object.UID != o.UID || !before.Same(group) {
		gs.queue.Remove(&g.Entry)
		g.refused, g.evicted = "", nil
		if before != nil {
			gs.shrink(g)
		}
		gs.enqueue(g, now)
	}
}

// remove notes that a PodGroup is gone. Pods of it that have no node wait for another.
func (gs *gangs) remove(o *schedulingv1beta1.PodGroup) {
	g := gs.get(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	g.group, g.refused = nil, ""
	gs.unite(g)
	gs.shrink(g)
	gs.discard(g)
}

// unite has the Pods of the group that have a node be evicted as the group says.
func (gs *gangs) unite(g *gangState) {
	g.unit.Dissolve()
	g.unit = nil
	if g.group == nil || !g.group.Together {
		return
	}
	g.unit = gs.victims.units.New(g.group.Priority)
	for uid := range g.placed {
		g.unit.Add(uid)
	}
	for uid, p := range g.waiting {
		if p.placed() {
			g.unit.Add(uid)
		}
	}
}

func (gs *gangs) get(name types.NamespacedName) *gangState {
	if known := gs.byName[name]; known != nil {
		return known
	}
	gs.made++
	g := &gangState{name: name, waiting: map[types.UID]*pod{}, placed: map[types.UID]*corev1.Pod{}}
	g.UID, g.Class = types.UID("podgroup "+name.String()), gangClasses+gs.made
	gs.byName[name], gs.byUID[g.UID] = g, g
	return g
}

func (gs *gangs) discard(g *gangState) {
	if g.group == nil && len(g.waiting)+len(g.placed) == 0 {
		delete(gs.byName, g.name)
		delete(gs.byUID, g.UID)
		delete(gs.unreported, g)
	}
}

// settle notes a Pod to which the API shows a node.
func (gs *gangs) settle(p *corev1.Pod) {
	name, ok := gang.NameOf(p)
	if !ok || p.DeletionTimestamp != nil {
		gs.leave(p.UID)
		return
	}
	g := gs.get(name)
	before := g.placed[p.UID]
	if before == nil {
		gs.unreported[g] = true
	}
	if before == nil || !costsAlike(before, p) {
		g.unit.Add(p.UID)
	}
	gs.of[p.UID], g.placed[p.UID] = g, p
}

// costsAlike reports whether it costs as much to evict the one version of a Pod as the other.
func costsAlike(a, b *corev1.Pod) bool {
	return columns.Priority(a) == columns.Priority(b) && a.Status.StartTime.Equal(b.Status.StartTime) &&
		maps.Equal(a.Labels, b.Labels)
}

// leave notes that a Pod with a node counts no longer.
func (gs *gangs) leave(uid types.UID) {
	if g := gs.of[uid]; g != nil {
		delete(g.placed, uid)
		delete(gs.of, uid)
		g.unit.Remove(uid)
		gs.shrink(g)
		gs.discard(g)
	}
}

// join notes a Pod without a node, whose group this returns; nil when it is scheduled alone.
func (gs *gangs) join(p *pod, o *corev1.Pod) *gangState {
	name, ok := gang.NameOf(o)
	if !ok {
		return nil
	}
	g := gs.get(name)
	g.waiting[o.UID], g.profile = p, p.profile
	return g
}

// part notes that a Pod without a node is one no longer.
func (gs *gangs) part(p *pod) {
	if p.gang == nil {
		return
	}
	delete(p.gang.waiting, p.UID)
	p.gang.add(p.counted, -1)
	if gs.of[p.UID] != p.gang {
		p.gang.unit.Remove(p.UID)
	}
	gs.shrink(p.gang)
	gs.discard(p.gang)
}
