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

// kind is the kind in the references of Pods, claims and revisions.
var kind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// burst is the most Pods that one pass creates or deletes; later passes do the rest.
const burst = 500

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now time.Time
	Set *appsv1.StatefulSet
	// Revisions are the revisions of the namespace that the set controls, or that have no controller.
	Revisions []*appsv1.ControllerRevision
	// Text is the text of the present template, if it is known already.
	Text *controllerrevision.Text
	// Pods are the Pods with the set's controller reference.
	Pods []*corev1.Pod
	// Orphans are the active Pods of the namespace without a controller that the selector matches.
	Orphans []*corev1.Pod
	// Claims are, by name, the existing claims whose names the set gives to any ordinal, and all claims that the set
	// owns.
	Claims map[string]*corev1.PersistentVolumeClaim
}

// Plan names every effect of one pass. apply carries out its fields in order; a failure ends the pass.
type Plan struct {
	// Adopt and Release change the ownership of Pods. A plan with either has no other effects: ownership must be
	// settled first.
	Adopt, Release []*corev1.Pod
	// History is what the set's revisions need. If a revision must be adopted or released, that is the plan's only
	// effect.
	History controllerrevision.Plan
	// Relabel are Pods without their identity labels.
	Relabel []Relabelling
	// Owners are claims with their new owners.
	Owners []*corev1.PersistentVolumeClaim
	// Storage are missing claims of existing Pods.
	Storage []NewClaim
	// Create are the Pods to create, each with the claims to create before it.
	Create []Creation
	// Delete are the Pods to delete, in order.
	Delete []Deletion
	// Forget are revisions beyond the history limit, the lowest number first.
	Forget []*appsv1.ControllerRevision
	// Problem is why a needed Pod cannot be created; the pass fails with it after everything else is done.
	Problem error
	// Status is what the status must be if all of this succeeds.
	Status appsv1.StatefulSetStatus
	// Wake is when to decide again even if nothing changes; zero means never.
	Wake time.Time
	// Waits are the reasons why the pass goes no further.
	Waits []explain.Wait
}

// Relabelling is a Pod with the labels to set.
type Relabelling struct {
	Pod    *corev1.Pod
	Labels map[string]string
}

// NewClaim is a claim to create for a Pod.
type NewClaim struct {
	Claim *corev1.PersistentVolumeClaim
	Pod   string
}

// Creation is a Pod to create after its claims.
type Creation struct {
	Pod    *corev1.Pod
	Claims []NewClaim
}

// Deletion is a Pod to delete.
type Deletion struct {
	Pod    *corev1.Pod
	Reason Reason
}

// Reason is why a Pod is deleted. It determines what to confirm with the apiserver first, and which events to emit.
type Reason string

// The reasons of a plan's deletions.
const (
	ReasonScaledDown Reason = "ScaledDown" // its ordinal is not wanted
	ReasonEnded      Reason = "Ended"      // has ended, and its ordinal needs another Pod
	ReasonOutdated   Reason = "Outdated"   // of an earlier revision that an update replaces
	ReasonNeverReady Reason = "NeverReady" // of an earlier revision, and blocks the update because it was never ready
)

// Decide returns what one pass over a StatefulSet has to do.
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
	// start is the first ordinal, end the one after the last. There may be billions in between: a pass iterates over
	// the existing Pods, and over at most burst missing ones.
	start, end int
	// pods are the Pods of the ordinals; filled are the ordinals with a Pod, in ascending order; surplus are the other
	// Pods, in descending order.
	pods    map[int]*corev1.Pod
	filled  []int
	surplus []*corev1.Pod
	// current is the revision that the set is being updated from, updated are all revisions with the set's present
	// template.
	current string
	updated revisionNames
	// deleted are the names of the Pods that the plan deletes.
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

// wakeAt requests another pass at the time, unless an earlier one is due.
func (w *work) wakeAt(at time.Time) {
	if w.plan.Wake.IsZero() || at.Before(w.plan.Wake) {
		w.plan.Wake = at
	}
}

// historyOf returns the input of the decision about the set's history.
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
