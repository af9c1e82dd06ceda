package disruption

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/events"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/scales"
	"keelson.dev/services/workload-controllers/internal/write"
)

// recorder emits events; events.Recorder implements it.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller counts the disruptions that the PodDisruptionBudgets allow.
type Controller struct {
	client   client.Client // reads from the cache
	writer   *write.Writer
	pods     *podset.Index
	selected *podset.Selections
	scales   *scales.Client
	recorder recorder
	now      func() time.Time
}

// steps are what a pass over a budget consists of. It needs no gate: a status counted from an outdated cache is
// refused by its resource version, or recounted once the newer state arrives.
func (c *Controller) steps() *pass.Steps[*policyv1.PodDisruptionBudget, Input, Plan] {
	return &pass.Steps[*policyv1.PodDisruptionBudget, Input, Plan]{
		Reader: c.client, New: func() *policyv1.PodDisruptionBudget { return &policyv1.PodDisruptionBudget{} },
		Observe: c.observe, Decide: Decide, Apply: c.apply,
		After: func(in Input, plan Plan) time.Duration { return pass.Until(plan.Wake, in.Now) },
	}
}

// observe reads the input of a decision. All of it is shared with the cache.
func (c *Controller) observe(ctx context.Context, budget *policyv1.PodDisruptionBudget) (Input, bool, error) {
	in := Input{Now: c.now(), Budget: budget,
		Pods: c.pods.Members(c.selected.Key(budget.Namespace, budget.Name))}
	if budget.DeletionTimestamp != nil {
		return in, false, nil
	}
	slices.SortFunc(in.Pods, func(x, y *corev1.Pod) int { return strings.Compare(x.Name, y.Name) })
	if !DependsOnIntended(&budget.Spec) {
		return in, true, nil
	}
	intents, err := c.intents(ctx, in.Pods)
	if err != nil {
		return in, false, err
	}
	in.Intended, in.IntendedError = sum(intents)
	return in, true, nil
}

// intents returns what the controllers of the Pods intend; it follows owner references up to the object that users
// write. Pods without a controller count for none.
func (c *Controller) intents(ctx context.Context, pods []*corev1.Pod) ([]Intent, error) {
	var intents []Intent
	known := map[metav1.OwnerReference]bool{}
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || known[metav1.OwnerReference{Kind: owner.Kind, UID: owner.UID}] {
			continue
		}
		known[metav1.OwnerReference{Kind: owner.Kind, UID: owner.UID}] = true
		intent, err := c.intent(ctx, pod.Namespace, owner)
		if err != nil {
			return nil, err
		}
		if intent != nil {
			intents = append(intents, *intent)
		}
	}
	return intents, nil
}

// intent returns nil for a controller that is gone: it intends no Pods any more. For kinds that are not built into
// Kubernetes it asks for the scale each time.
func (c *Controller) intent(ctx context.Context, namespace string, owner *metav1.OwnerReference) (*Intent, error) {
	intent := &Intent{Kind: owner.Kind, Name: owner.Name}
	key := client.ObjectKey{Namespace: namespace, Name: owner.Name}
	var object client.Object
	var replicas func() *int32
	switch owner.APIVersion + " " + owner.Kind {
	case "apps/v1 Deployment":
		deployment := &appsv1.Deployment{}
		object, replicas = deployment, func() *int32 { return deployment.Spec.Replicas }
	case "apps/v1 ReplicaSet":
		set := &appsv1.ReplicaSet{}
		object, replicas = set, func() *int32 { return set.Spec.Replicas }
	case "apps/v1 StatefulSet":
		set := &appsv1.StatefulSet{}
		object, replicas = set, func() *int32 { return set.Spec.Replicas }
	case "v1 ReplicationController":
		controller := &corev1.ReplicationController{}
		object, replicas = controller, func() *int32 { return controller.Spec.Replicas }
	case "apps/v1 DaemonSet", "batch/v1 Job":
		intent.Err = scales.ErrNone
		return intent, nil
	default:
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
		found, err := c.scales.OfKind(ctx, kind, namespace, owner.Name)
		return byScale(owner, found.Scale, err), nil
	}
	if err := c.client.Get(ctx, key, object); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the %s %s: %w", owner.Kind, owner.Name, err)
	}
	if object.GetUID() != owner.UID {
		return nil, nil
	}
	if above := metav1.GetControllerOfNoCopy(object); above != nil {
		return c.intent(ctx, namespace, above)
	}
	intent.Replicas = ptr.Deref(replicas(), 1)
	return intent, nil
}

// apply carries out the plan.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	for _, e := range plan.Events {
		if e.Pod != nil {
			c.recorder.Record(e.Pod, e.Event)
		} else {
			c.recorder.Record(in.Budget, e.Event)
		}
	}
	_, err := write.Status(ctx, c.writer, in.Budget, plan.Status,
		func(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudgetStatus { return &b.Status })
	return err
}
