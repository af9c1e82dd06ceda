package daemonset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
	"keelson.dev/kit/seconds"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/pace"
	"keelson.dev/services/workload-controllers/internal/podops"
)

var kind = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

// burst is the most Pods that one pass creates, and the most that it deletes; later passes do the rest.
const burst = 500

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now       time.Time
	DaemonSet *appsv1.DaemonSet
	// Revisions are the revisions of the namespace that the DaemonSet may own; more do no harm.
	Revisions []*appsv1.ControllerRevision
	// Text is the text of the present template, if it is known already.
	Text *controllerrevision.Text
	// Places are the nodes that run or keep its Pods.
	Places *Places
	// Pods are the Pods that it controls, except those that have ended and are being deleted.
	Pods []*corev1.Pod
	// Missing are the nodes that Pods are bound to or intended for and that do not exist.
	Missing map[string]bool
	// Orphans are the active Pods of the namespace without a controller that the selector matches, Unmatched its own
	// Pods that the selector does not match.
	Orphans, Unmatched []*corev1.Pod
	// NextAvailable is when a ready Pod becomes available by the passage of time; zero if none will.
	NextAvailable time.Time
	// Failures are the failures of replaced Pods, by node.
	Failures map[string]Failure
	// Written is when this process last wrote the status; zero if it has not.
	Written time.Time
}

// Plan names every effect of one pass. apply carries out its fields in order; a failure ends the pass.
type Plan struct {
	// Adopt and Release change the ownership of Pods, History.Claims that of revisions. A plan with any of them has no
	// other effects: ownership must be settled first.
	Adopt, Release []*corev1.Pod
	// History is what the ControllerRevisions need. Pods are created from the current revision.
	History controllerrevision.Plan
	// Create are the nodes to create a Pod for.
	Create []string
	// Delete are the Pods to delete.
	Delete []Deletion
	// Surplus are revisions beyond the history limit, the lowest number first.
	Surplus []*appsv1.ControllerRevision
	// Status is what the status must be.
	Status appsv1.DaemonSetStatus
	// WriteStatus says to write the status now. A difference only in figures may wait for Wake.
	WriteStatus bool
	// Wake is when to decide again even if nothing changes; zero means never.
	Wake time.Time
}

// settled reports whether the ownership of Pods and revisions needs no change.
func (p *Plan) settled() bool { return len(p.Adopt)+len(p.Release) == 0 && p.History.Claims.Settled() }

// Deletion is a Pod to delete.
type Deletion struct {
	Pod    *corev1.Pod
	Reason podops.Reason
	// Failed is the node to record a failure for, or "".
	Failed string
	// Event is the event about the deletion; nil if the deletion needs no explanation.
	Event *events.Event
}

// Decide returns what one pass over a DaemonSet has to do.
func Decide(in Input) Plan {
	if in.DaemonSet.DeletionTimestamp != nil {
		return Plan{Status: in.DaemonSet.Status}
	}
	plan := Plan{Adopt: in.Orphans, Release: in.Unmatched, History: controllerrevision.Decide(historyOf(&in)),
		Status: in.DaemonSet.Status}
	if !plan.settled() {
		plan.History = controllerrevision.Plan{Claims: plan.History.Claims}
		return plan
	}
	r := newRound(&in, &plan)
	r.look()
	r.keep()
	switch {
	case in.DaemonSet.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
	case r.surge > 0:
		r.updateWithSurge()
	default:
		r.update()
	}
	plan.Create, plan.Delete = limited(plan.Create), limited(plan.Delete)
	plan.Surplus = r.surplusHistory()
	r.writeStatus()
	return plan
}

func limited[T any](effects []T) []T { return effects[:min(burst, len(effects))] }

// round is the working state of one decision.
type round struct {
	*Input
	plan *Plan
	// surge and unavailable are the bounds of a rolling update; surge is 0 without one.
	surge, unavailable int
	minReady           time.Duration
	// stations are the nodes of Places, in their order.
	stations []station
	// strangers are nodes that have Pods but should not.
	strangers map[string]bool
}

// station is the DaemonSet's Pods on one node.
type station struct {
	place
	seen
	// fresh and old are the Pod of the current template and that of an earlier one that remain after those in excess
	// have been deleted; nil if there is none.
	fresh, old *corev1.Pod
}

// seen is what a node had at the start of the pass.
type seen struct {
	// occupied says that there is a Pod, even a terminating one; failed that a Pod has failed; crowded that there are
	// two Pods of the current template or two of earlier ones, of which the pass deletes one.
	occupied, failed, crowded bool
	// ready and available describe the Pods that are not terminating; updated says that there is a Pod of the current
	// template and none of another.
	ready, available, updated bool
}

func newRound(in *Input, plan *Plan) *round {
	r := &round{Input: in, plan: plan, minReady: seconds.Of(in.DaemonSet.Spec.MinReadySeconds),
		stations: make([]station, len(in.Places.list))}
	desired := 0
	for at, place := range in.Places.list {
		r.stations[at].place = place
		if place.verdict == runs {
			desired++
		}
	}
	r.surge, r.unavailable = bounds(&in.DaemonSet.Spec.UpdateStrategy, desired)
	return r
}

// look classifies the Pods, and deletes those that should not exist: Pods on wrong nodes, ended Pods, and Pods in
// excess.
func (r *round) look() {
	// The Pods of one node form a linked list: last is its newest element, before links to the previous one; both hold
	// indexes plus one.
	last, before := make([]int32, len(r.stations)), make([]int32, len(r.Pods))
	for i, pod := range r.Pods {
		node := nodeOf(pod)
		at, ok := r.Places.at[node]
		if !ok {
			r.lookElsewhere(pod, node)
			continue
		}
		before[i], last[at] = last[at], int32(i+1)
	}
	for at := range r.stations {
		s := &r.stations[at]
		for i := last[at]; i > 0; i = before[i-1] {
			r.lookAt(s, r.Pods[i-1])
		}
		s.updated = s.fresh != nil && s.old == nil
		r.single(s)
	}
}

// lookElsewhere handles a Pod on, or intended for, a node that should not have it. podgc deletes a Pod that was
// bound to a deleted node; an unbound Pod for such a node can never run.
func (r *round) lookElsewhere(pod *corev1.Pod, node string) {
	missing := r.Missing[node]
	if node == "" || missing && pod.Spec.NodeName != "" {
		return
	}
	if !missing {
		if r.strangers == nil {
			r.strangers = map[string]bool{}
		}
		r.strangers[node] = true
	}
	if pod.DeletionTimestamp == nil {
		r.end(pod, podops.NotSelected)
	}
}

func (r *round) lookAt(s *station, pod *corev1.Pod) {
	s.occupied = true
	switch {
	case pod.DeletionTimestamp != nil:
	case pod.Status.Phase == corev1.PodFailed:
		s.failed = true
		r.endFailed(pod, s.node)
	case pod.Status.Phase == corev1.PodSucceeded:
		event := podSucceeded(pod)
		r.plan.Delete = append(r.plan.Delete, Deletion{Pod: pod, Reason: podops.Recreated, Event: &event})
	default:
		s.ready = s.ready || podview.IsReady(pod)
		s.available = s.available || r.isAvailable(pod)
		kept := &s.old
		if slices.Contains(r.plan.History.Alike, pod.Labels[controllerrevision.HashLabel]) {
			kept = &s.fresh
		}
		s.crowded = s.crowded || *kept != nil
		r.first(kept, pod)
	}
}

// first keeps one of two Pods by goesFirst, and deletes the other.
func (r *round) first(kept **corev1.Pod, pod *corev1.Pod) {
	switch {
	case *kept == nil:
		*kept = pod
	case r.goesFirst(pod, *kept):
		r.end(*kept, podops.ScaledDown)
		*kept = pod
	default:
		r.end(pod, podops.ScaledDown)
	}
}

// single deletes one of two Pods of a node. With surge, the old Pod stays beside the new one while the new one
// becomes ready, as long as the old one is available.
func (r *round) single(s *station) {
	switch {
	case s.fresh == nil || s.old == nil:
	case r.surge > 0:
		if !podview.IsReady(s.old) || r.isAvailable(s.fresh) {
			r.end(s.old, podops.Outdated)
			s.old = nil
		}
	case r.goesFirst(s.fresh, s.old):
		r.end(s.old, podops.ScaledDown)
		s.old = nil
	default:
		r.end(s.fresh, podops.ScaledDown)
		s.fresh = nil
	}
}

// goesFirst reports which of two Pods of a node stays: an available Pod before an unavailable one, a bound Pod
// before an unbound one, then the older one.
func (r *round) goesFirst(a, b *corev1.Pod) bool {
	if serves, other := r.isAvailable(a), r.isAvailable(b); serves != other {
		return serves
	}
	if bound, other := a.Spec.NodeName != "", b.Spec.NodeName != ""; bound != other {
		return bound
	}
	if created := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); created != 0 {
		return created < 0
	}
	return a.Name < b.Name
}

// keep requests a Pod for every node that has none.
func (r *round) keep() {
	for at := range r.stations {
		if s := &r.stations[at]; s.verdict == runs && !s.occupied {
			r.plan.Create = append(r.plan.Create, s.node)
		}
	}
}

func (r *round) end(pod *corev1.Pod, reason podops.Reason) {
	r.plan.Delete = append(r.plan.Delete, Deletion{Pod: pod, Reason: reason})
}

func (r *round) isAvailable(pod *corev1.Pod) bool { return podview.IsAvailable(pod, r.minReady, r.Now) }

func (r *round) wake(at time.Time) { r.plan.Wake = pace.Earlier(r.plan.Wake, at) }

// surplusHistory returns the old revisions beyond spec.revisionHistoryLimit that no Pod uses.
func (r *round) surplusHistory() []*appsv1.ControllerRevision {
	inUse := func(revision *appsv1.ControllerRevision) bool {
		return slices.ContainsFunc(r.Pods, func(pod *corev1.Pod) bool {
			return pod.Labels[controllerrevision.HashLabel] == revision.Labels[controllerrevision.HashLabel]
		})
	}
	return controllerrevision.Surplus(r.plan.History.Old, r.DaemonSet.Spec.RevisionHistoryLimit, inUse)
}

func historyOf(in *Input) controllerrevision.In {
	set := in.DaemonSet
	return controllerrevision.In{Owner: owner(set), Template: &set.Spec.Template, Annotations: set.Annotations,
		Collisions: set.Status.CollisionCount, Revisions: in.Revisions, Text: in.Text}
}

func owner(set *appsv1.DaemonSet) claim.Owner {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		selector = labels.Nothing() // the apiserver refuses such a selector
	}
	return claim.Owner{
		Namespace: set.Namespace, Name: set.Name, UID: set.UID,
		Kind: kind, Selector: selector,
		Deleting: err != nil || set.DeletionTimestamp != nil,
	}
}
