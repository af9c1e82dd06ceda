package resourceclaim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/write"
)

// recorder emits events; events.Recorder implements it.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller creates claims for Pods, and releases claims from Pods that have ended.
type Controller struct {
	client   client.Client // reads from the cache
	live     client.Reader // reads from the apiserver
	stores   stores
	gate     *gate.Gate
	writer   *write.Writer
	recorder recorder
}

// Reconcile makes a pass over a Pod, or over a claim.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if name, is := strings.CutPrefix(request.Name, claimPrefix); is {
		request.Name = name
		return c.claimSteps().Reconcile(ctx, request)
	}
	return c.podSteps().Reconcile(ctx, request)
}

// podSteps are what a pass over a Pod consists of. The gate prevents a pass from creating a claim twice.
func (c *Controller) podSteps() *pass.Steps[*corev1.Pod, Input, Plan] {
	return &pass.Steps[*corev1.Pod, Input, Plan]{
		Reader: c.client, New: func() *corev1.Pod { return &corev1.Pod{} }, Gate: c.gate,
		Observe: c.observe, Decide: Decide, Apply: c.apply,
	}
}

// observe reads the Pod's claims and the templates that it names. All of it is shared with the cache.
func (c *Controller) observe(_ context.Context, pod *corev1.Pod) (Input, bool, error) {
	in := Input{Pod: pod, Templates: map[string]*resourcev1.ResourceClaimTemplate{}}
	if !needsClaims(pod) {
		return in, false, nil
	}
	in.Own = storeindex.Find[resourcev1.ResourceClaim](c.stores.claims, byPod, string(pod.UID))
	for i := range pod.Spec.ResourceClaims {
		name := pod.Spec.ResourceClaims[i].ResourceClaimTemplateName
		if name == nil {
			continue
		}
		if template := storeindex.Get[resourcev1.ResourceClaimTemplate](c.stores.templates,
			storeindex.Key(pod.Namespace, *name)); template != nil {
			in.Templates[*name] = template
		}
	}
	return in, true, nil
}

// apply carries out the plan. It writes the names of the existing claims even if creating another one fails.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	for _, e := range plan.Events {
		c.recorder.Record(in.Pod, e)
	}
	names := maps.Clone(plan.Names)
	failure := c.create(ctx, in.Pod, plan.Create, names)
	if len(names) > 0 {
		if err := c.name(ctx, in.Pod, names); err != nil {
			return err
		}
	}
	return failure
}

// create creates claims, and adds their names.
func (c *Controller) create(ctx context.Context, pod *corev1.Pod, create []NewClaim, names map[string]string) error {
	for _, made := range create {
		err := c.writer.Create(ctx, pod.UID, made.Claim)
		switch {
		case err == nil:
			names[made.Name] = made.Claim.Name
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil
		default:
			c.recorder.Record(pod, refused(made, err))
			return fmt.Errorf("creating a ResourceClaim for %s: %w", made.Name, err)
		}
	}
	return nil
}

// name writes the names of its claims into the Pod's status. A deleted Pod needs no status, nor does another Pod of
// its name.
func (c *Controller) name(ctx context.Context, pod *corev1.Pod, names map[string]string) error {
	type metadata struct {
		UID types.UID `json:"uid"`
	}
	type status struct {
		ResourceClaimStatuses []corev1.PodResourceClaimStatus `json:"resourceClaimStatuses"`
	}
	var statuses []corev1.PodResourceClaimStatus
	for _, asked := range slices.Sorted(maps.Keys(names)) {
		claim := names[asked]
		statuses = append(statuses, corev1.PodResourceClaimStatus{Name: asked, ResourceClaimName: &claim})
	}
	body, err := json.Marshal(struct {
		Metadata metadata `json:"metadata"`
		Status   status   `json:"status"`
	}{metadata{pod.UID}, status{statuses}})
	if err != nil {
		return fmt.Errorf("saying which claims the Pod has: %w", err)
	}
	next := &corev1.Pod{}
	next.Namespace, next.Name = pod.Namespace, pod.Name
	err = failpoint.Around("workload-controllers/resourceclaim.name", func() error {
		return c.client.Status().Patch(ctx, next, client.RawPatch(types.StrategicMergePatchType, body))
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("saying which claims the Pod has: %w", err)
	}
	return nil
}
