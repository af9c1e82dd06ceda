package simulate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/feed"
)

// horizon is how much time passes at most: beyond every delay between two tries, short of the time after which a Pod
// is tried again for no reason.
const horizon = time.Minute

// seed decides between nodes of equal score, the same at each run.
const seed = 1

// outcome is what became of a Pod that asked for a node.
type outcome struct {
	pod *corev1.Pod
	// node is where it goes; empty when there is none.
	node string
	// message is why there is none, and change the least that would help.
	message, change string
	// order is its place among the Pods that got a node, from 1.
	order int
}

// preempted is a Pod that gives its room to another.
type preempted struct {
	pod  *corev1.Pod
	by   *corev1.Pod
	node string
}

// run is a scheduler at work on a mesh that no other client changes.
type run struct {
	cycle    *cycle.Cycle
	now      time.Time
	outcomes map[types.UID]*outcome
	victims  []preempted
	placed   int
	// again are the Pods that controllers make in place of victims.
	again []*corev1.Pod
}

// simulate gives Pods their nodes, in the scheduler's order, those that wait on the mesh among them.
func simulate(m *mesh, c config.Config, pending []*corev1.Pod) *run {
	r := &run{cycle: cycle.New(cycle.Config{Profiles: c.Profiles, Backoff: c.Backoff, Seed: seed}),
		now: time.Unix(0, 0), outcomes: map[types.UID]*outcome{}}
	for _, profile := range c.Profiles {
		r.cycle.Lead(profile.Name, true, r.now)
	}
	r.load(m)
	for _, p := range pending {
		r.ask(p)
	}
	for end := r.now.Add(horizon); ; {
		if v, ok := r.cycle.Next(r.now); ok {
			r.take(v)
			continue
		}
		at, ok := r.cycle.NextTime(r.now)
		if !ok || at.After(end) || !at.After(r.now) {
			break
		}
		r.now = at
	}
	r.explain()
	return r
}

// load gives the Cycle everything but the Pods that wait.
func (r *run) load(m *mesh) {
	for _, o := range m.others {
		if change, ok := feed.Set(o); ok {
			change.Apply(r.cycle, r.now)
		}
	}
	for _, class := range m.classes {
		r.cycle.SetClass(class)
	}
	for _, claim := range m.claims {
		r.cycle.SetClaim(claim)
	}
	for _, n := range m.nodes {
		r.cycle.SetNode(n)
	}
	for _, p := range m.pods {
		if p.Spec.NodeName != "" {
			r.cycle.SetPod(p, r.now)
		}
	}
}

func (r *run) ask(p *corev1.Pod) {
	// A Pod that names its node passes by the scheduler.
	r.outcomes[p.UID] = &outcome{pod: p, node: p.Spec.NodeName}
	r.cycle.SetPod(p, r.now)
}

// take carries out what was decided, as the API would show it.
func (r *run) take(v cycle.Verdict) {
	o := r.outcomes[v.Pod.UID]
	switch {
	case v.Node != "":
		r.placed++
		o.node, o.message, o.order = v.Node, "", r.placed
	case v.Plan != nil && len(v.Plan.Victims) > 0:
		r.evict(v)
	default:
		o.message = v.Message()
	}
}

// evict ends the victims at once. What controllers made is made again.
func (r *run) evict(v cycle.Verdict) {
	for _, victim := range v.Plan.Victims {
		leaving := victim.DeepCopy()
		leaving.DeletionTimestamp = &metav1.Time{Time: r.now}
		leaving.Spec.NodeName = r.nodeOf(victim)
		r.cycle.SetPod(leaving, r.now)
	}
	r.cycle.Evicted(v.Pod.UID, nil, nil, r.now)
	for _, victim := range v.Plan.Victims {
		r.victims = append(r.victims, preempted{pod: victim, by: v.Pod, node: r.nodeOf(victim)})
		r.cycle.RemovePod(victim)
		if o := r.outcomes[victim.UID]; o != nil {
			o.node, o.message = "", fmt.Sprintf("gives the room that it got to %s/%s", v.Pod.Namespace, v.Pod.Name)
		}
		if again, ok := recreated(victim); ok {
			r.again = append(r.again, again)
			r.ask(again)
		}
	}
}

// nodeOf returns the node on which a Pod takes room.
func (r *run) nodeOf(p *corev1.Pod) string {
	node, _ := r.cycle.State().PodNode(p.UID)
	return node
}

// explain says why Pods have no node, and what would help one of each kind.
func (r *run) explain() {
	known := map[string]string{}
	for _, uid := range r.sorted() {
		o := r.outcomes[uid]
		if o.node != "" {
			continue
		}
		if o.message == "" {
			o.message = r.place(o.pod)
		}
		key := fmt.Sprint(ownerOf(o.pod), o.message)
		change, ok := known[key]
		if !ok {
			if changes := r.cycle.Remedies(uid); len(changes) > 0 {
				change = changes[0].String()
			}
			known[key] = change
		}
		o.change = change
	}
}

// place is why a Pod was never tried.
func (r *run) place(p *corev1.Pod) string {
	if e, ok := r.cycle.Explain(namespaced(p)); ok {
		return e.Summary
	}
	return fmt.Sprintf("no profile of the scheduler is named %q", p.Spec.SchedulerName)
}

func (r *run) sorted() []types.UID {
	var uids []types.UID
	for uid := range r.outcomes {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}

func namespaced(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
