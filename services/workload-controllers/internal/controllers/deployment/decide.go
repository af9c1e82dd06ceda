package deployment

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/revision"
)

var kind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now        time.Time
	Deployment *appsv1.Deployment
	// ReplicaSets are those of the Deployment's namespace that it may own: with its controller reference, or with no
	// controller and labels that its selector matches. More do no harm.
	ReplicaSets []*appsv1.ReplicaSet
	// Unfinished counts the Pods of each ReplicaSet, by its UID, that have not ended; terminating ones count. Only the
	// strategy Recreate asks for it.
	Unfinished map[types.UID]int
}

// Plan names every effect of one pass. apply carries out its fields in order; a failure ends the pass.
type Plan struct {
	// Claims are ReplicaSets to adopt or release. A plan that has some has nothing else: what the Deployment owns must
	// be settled before anything follows from it.
	Claims claim.Claims[*appsv1.ReplicaSet]
	// Rollback, when set, changes the Deployment itself and is again the plan's only effect.
	Rollback *Rollback
	// Create is the ReplicaSet to make, or nil.
	Create *Creation
	// Updates are ReplicaSets to change: that of the current template first, then the others from the oldest on.
	Updates []Update
	// Deletes are ReplicaSets beyond the history limit, the lowest revision first.
	Deletes []Deletion
	// Status is what the Deployment's status must be.
	Status appsv1.DeploymentStatus
	// Revision is what the Deployment's revision annotation must be; empty leaves it alone. It is written last: as long
	// as it differs from the ReplicaSet's, the start of the rollout has not been reported yet.
	Revision string
	// Wake is when to decide again though nothing changes; the zero time means never.
	Wake time.Time
}

// Reason says why an effect is in the plan. It is used in logs and metrics, and decides which event is recorded.
type Reason string

// The reasons of a plan's effects.
const (
	ReasonNewTemplate   Reason = "NewTemplate"   // the template has no ReplicaSet yet
	ReasonRollout       Reason = "Rollout"       // replicas move to the current template
	ReasonUnhealthy     Reason = "Unhealthy"     // unavailable replicas of an old template go first
	ReasonScale         Reason = "Scale"         // spec.replicas changed
	ReasonRecreate      Reason = "Recreate"      // the old Pods have to go first
	ReasonCopied        Reason = "Copied"        // annotations or minReadySeconds follow the Deployment
	ReasonHistoryLimit  Reason = "HistoryLimit"  // more old ReplicaSets than revisionHistoryLimit
	ReasonRollback      Reason = "Rollback"      // asked for by annotation
	ReasonRollbackMoot  Reason = "RollbackMoot"  // asked for, but to the present template
	ReasonRollbackStuck Reason = "RollbackStuck" // asked for, but the revision is gone
	ReasonFailedBack    Reason = "FailedBack"    // the deadline is exceeded, and going back then is asked for
)

// Creation is a ReplicaSet to make.
type Creation struct {
	ReplicaSet *appsv1.ReplicaSet
	Reason     Reason
}

// Update is a ReplicaSet to change.
type Update struct {
	// From is the object as it was observed, To as it must become.
	From, To *appsv1.ReplicaSet
	Reason   Reason
}

// Deletion is a ReplicaSet to delete, provided that it is still as it was observed.
type Deletion struct {
	ReplicaSet *appsv1.ReplicaSet
	Reason     Reason
}

// Rollback is the Deployment's answer to an annotation that asks for one, now or on failure.
type Rollback struct {
	// Template is what spec.template becomes; nil leaves it alone.
	Template *corev1.PodTemplateSpec
	// Annotations are all annotations afterwards.
	Annotations map[string]string
	Reason      Reason
	Event       events.Event
}

// Decide says what one pass over a Deployment has to do.
func Decide(in Input) Plan {
	claims := claim.Decide(owner(in.Deployment), in.ReplicaSets)
	if !claims.Settled() {
		return Plan{Claims: claims, Status: in.Deployment.Status}
	}
	r := newRollout(in, claims.Owned)
	if in.Deployment.DeletionTimestamp == nil {
		if request, ok := in.Deployment.Annotations[appsv1.DeprecatedRollbackTo]; ok && !in.Deployment.Spec.Paused {
			return Plan{Rollback: r.rollback(request), Status: in.Deployment.Status}
		}
		if !r.isResuming() {
			r.size()
			r.annotate()
			r.markComplete()
			if back := r.failBack(); back != nil {
				return Plan{Rollback: back, Status: in.Deployment.Status}
			}
		}
	}
	return r.plan()
}

// size gives every ReplicaSet its number of replicas.
func (r *rollout) size() {
	switch {
	case r.deployment.Spec.Paused:
		r.scale()
	case r.deployment.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		r.recreate()
	case r.isRescaled():
		r.scale()
	default:
		r.roll()
	}
}

// rollout is the working state of one decision. The objects in it are only read; sizes and annotations change.
type rollout struct {
	now        time.Time
	deployment *appsv1.Deployment
	unfinished map[types.UID]int
	// replicas, surge and unavailable are spec.replicas and the bounds that the strategy sets around it.
	replicas, surge, unavailable int32
	// current stands for spec.template and is nil when no ReplicaSet does.
	current *member
	// old are the others, the oldest first.
	old []*member
}

// member is a ReplicaSet of the Deployment.
type member struct {
	// set is the object as it was observed; for one that is to be created, as it will be created.
	set     *appsv1.ReplicaSet
	created bool
	// size is the number of replicas that it must have, reason says why it differs from what it has.
	size   int32
	reason Reason
	// sized asks for the annotations about the size even where the size stays.
	sized bool
	// annotations and minReady are what it must have.
	annotations map[string]string
	minReady    int32
}

func newRollout(in Input, sets []*appsv1.ReplicaSet) *rollout {
	r := &rollout{now: in.Now, deployment: in.Deployment, unfinished: in.Unfinished,
		replicas: replicasOf(in.Deployment)}
	r.surge, r.unavailable = bounds(in.Deployment)
	current := revision.Find(&in.Deployment.Spec.Template, sets)
	for _, set := range sets {
		m := &member{
			set: set, size: sizeOf(set), annotations: set.Annotations, minReady: set.Spec.MinReadySeconds,
		}
		if set == current {
			r.current = m
		} else {
			r.old = append(r.old, m)
		}
	}
	slices.SortFunc(r.old, func(a, b *member) int { return revision.ByAge(a.set, b.set) })
	return r
}

// all returns the members, the current first.
func (r *rollout) all() []*member {
	if r.current == nil {
		return r.old
	}
	return append([]*member{r.current}, r.old...)
}

// total is the sum of all sizes. It may be more than one size can: several ReplicaSets may be as large as the API
// lets them be.
func (r *rollout) total() int {
	total := 0
	for _, m := range r.all() {
		total += int(m.size)
	}
	return total
}

// available returns how many replicas serve for sure. A status may be from just before Pods were ended: no more are
// left than were asked for, and no more will be than are to be.
func (m *member) available() int32 {
	return min(m.set.Status.AvailableReplicas, m.replicas(), m.size)
}

func (m *member) resize(size int32, reason Reason) {
	m.sized = true
	if size != m.size {
		m.size, m.reason = size, reason
	}
}

// replicas is how many replicas the object asks for; one that is to be created has none yet.
func (m *member) replicas() int32 {
	if m.created {
		return 0
	}
	return sizeOf(m.set)
}

func owner(deployment *appsv1.Deployment) claim.Owner {
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		selector = labels.Nothing() // the apiserver refuses such a selector
	}
	return claim.Owner{
		Namespace: deployment.Namespace, Name: deployment.Name, UID: deployment.UID,
		Kind: kind, Selector: selector,
		Deleting: err != nil || deployment.DeletionTimestamp != nil,
	}
}

func replicasOf(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1
	}
	return *deployment.Spec.Replicas
}

func sizeOf(set *appsv1.ReplicaSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}
