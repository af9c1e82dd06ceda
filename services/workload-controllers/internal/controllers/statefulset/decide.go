package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/kit/explain"
	"keelson.dev/kit/seconds"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
)

// kind is what the Pods, claims and revisions refer to.
var kind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// burst is the most Pods that one pass creates or deletes; the rest is for the passes after it.
const burst = 500

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now time.Time
	Set *appsv1.StatefulSet
	// Revisions are those of the namespace that the set may own: with its controller reference or without a controller.
	Revisions []*appsv1.ControllerRevision
	// Text is that of the present template, if it is known already.
	Text *controllerrevision.Text
	// Pods are those with the set's controller reference.
	Pods []*corev1.Pod
	// Orphans are the active Pods of the namespace that have no controller and that the selector matches.
	Orphans []*corev1.Pod
	// Claims are, by their names, those that exist under a name that the set gives to some ordinal's, and all that the
	// set owns.
	Claims map[string]*corev1.PersistentVolumeClaim
}

// Plan names every effect of one pass. apply carries out its fields in order; a failure ends the pass.
type Plan struct {
	// Adopt and Release change whose the Pods are. A plan that has some has nothing else: what the set owns must be
	// settled before anything follows from it.
	Adopt, Release []*corev1.Pod
	// History is what the set's revisions need. Where one has to be adopted or released, that is the plan's only
	// effect.
	History controllerrevision.Plan
	// Relabel are Pods whose labels do not say who they are.
	Relabel []Relabelling
	// Owners are claims as they must become: with other owners.
	Owners []*corev1.PersistentVolumeClaim
	// Storage are claims that are missing for Pods that exist.
	Storage []NewClaim
	// Create are the Pods to make, each with the claims that have to be made before it.
	Create []Creation
	// Delete are the Pods to end, the first to go first.
	Delete []Deletion
	// Forget are revisions beyond the history limit, the lowest number first.
	Forget []*appsv1.ControllerRevision
	// Problem is why a Pod cannot be made though it should; the pass fails with it when all else is done.
	Problem error
	// Status is what the status must be if all of this succeeds.
	Status appsv1.StatefulSetStatus
	// Wake is when to decide again though nothing changes; the zero time means never.
	Wake time.Time
	// Waits are what keeps the pass from going further.
	Waits []explain.Wait
}

// Relabelling is a Pod with the labels that it has to get.
type Relabelling struct {
	Pod    *corev1.Pod
	Labels map[string]string
}

// NewClaim is a claim to make for a Pod.
type NewClaim struct {
	Claim *corev1.PersistentVolumeClaim
	Pod   string
}

// Creation is a Pod to make after its claims.
type Creation struct {
	Pod    *corev1.Pod
	Claims []NewClaim
}

// Deletion is a Pod to end.
type Deletion struct {
	Pod    *corev1.Pod
	Reason Reason
}

// Reason says why a Pod is deleted. It decides what is asked of the server first, and which events are recorded.
type Reason string

// The reasons of a plan's deletions.
const (
	ReasonScaledDown Reason = "ScaledDown" // its ordinal is not asked for
	ReasonEnded      Reason = "Ended"      // has ended, and its ordinal is for another
	ReasonOutdated   Reason = "Outdated"   // of an earlier revision that an update replaces
	ReasonNeverReady Reason = "NeverReady" // of an earlier revision, and in the way of the update because never ready
)

// Decide says what one pass over a StatefulSet has to do.
func Decide(in Input) Plan {
	claimant := owner(in.Set)
	if in.Set.DeletionTimestamp != nil {
		w := &work{in: in, set: in.Set, minReady: minReadyOf(in.Set)}
		return Plan{Status: w.figures(in.Set.Status.CurrentRevision, revisionNames{in.Set.Status.UpdateRevision: true})}
	}
	adopt, release, mine := settle(claimant, in)
	if len(adopt)+len(release) > 0 {
		return Plan{Adopt: adopt, Release: release, Status: in.Set.Status}
	}
	history := controllerrevision.Decide(historyOf(in))
	if !history.Claims.Settled() {
		return Plan{History: history, Status: in.Set.Status}
	}
	w := newWork(in, mine, history)
	w.repair()
	if w.scale() && w.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		w.update()
	}
	w.finish()
	return w.plan
}

// work is the working state of one decision. The objects in it are only read.
type work struct {
	in   Input
	set  *appsv1.StatefulSet
	plan Plan
	// start is the first ordinal, end the one behind the last. There may be billions between them: a pass walks over
	// what exists, and over no more than burst of those that are missing.
	start, end int
	// pods are those of the ordinals, filled the ordinals that have one, the lowest first; surplus are the other Pods,
	// the highest ordinal first.
	pods    map[int]*corev1.Pod
	filled  []int
	surplus []*corev1.Pod
	// current names the revision that the set came from, updated all that have the template of the set as it is.
	current string
	updated revisionNames
	// deleted are the names of the Pods that the plan ends.
	deleted  map[string]bool
	minReady time.Duration
}

func newWork(in Input, pods []*corev1.Pod, history controllerrevision.Plan) *work {
	w := &work{in: in, set: in.Set, plan: Plan{History: history}, minReady: minReadyOf(in.Set),
		deleted: map[string]bool{}}
	w.place(pods)
	w.updated = alike(history)
	w.current = history.Current.Name
	for _, r := range history.Old {
		if r.Name == in.Set.Status.CurrentRevision {
			w.current = r.Name
		}
	}
	return w
}

// wakeAt asks for another pass at the time, should no earlier one be due.
func (w *work) wakeAt(at time.Time) {
	if w.plan.Wake.IsZero() || at.Before(w.plan.Wake) {
		w.plan.Wake = at
	}
}

// historyOf is what the set's history depends on.
func historyOf(in Input) controllerrevision.In {
	return controllerrevision.In{
		Owner: owner(in.Set), Template: &in.Set.Spec.Template, Annotations: in.Set.Annotations,
		Collisions: in.Set.Status.CollisionCount, Revisions: in.Revisions, Text: in.Text,
		NameIsLabel: true,
	}
}

func owner(set *appsv1.StatefulSet) claim.Owner {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		selector = labels.Nothing() // the apiserver refuses such a selector
	}
	return claim.Owner{
		Namespace: set.Namespace, Name: set.Name, UID: set.UID, Kind: kind, Selector: selector,
		Deleting: err != nil || set.DeletionTimestamp != nil,
	}
}

func replicasOf(set *appsv1.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

func minReadyOf(set *appsv1.StatefulSet) time.Duration {
	return seconds.Of(set.Spec.MinReadySeconds)
}
