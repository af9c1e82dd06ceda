package statefulset

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Controller maintains the Pods of StatefulSets.
type Controller struct {
	client      client.Client // reads from the cache
	live        client.Reader // reads from the apiserver
	sets        *write.Writer
	claimWriter *write.Writer
	history     *controllerrevision.Writer
	texts       controllerrevision.Texts
	ops         *podops.Operator
	pods        *podset.Index
	revisions   ownerindex.Index[*appsv1.ControllerRevision]
	claims      ownerindex.Index[*corev1.PersistentVolumeClaim]
	storage     toolscache.Indexer // all claims, indexed by byStem
	owners      wake.Owners
	gate        *gate.Gate
	recorder    podops.Recorder
	log         *zap.Logger
	now         func() time.Time
}

// steps are what a pass over a StatefulSet consists of.
func (c *Controller) steps() *pass.Steps[*appsv1.StatefulSet, Input, Plan] {
	return &pass.Steps[*appsv1.StatefulSet, Input, Plan]{
		Reader: c.client, New: func() *appsv1.StatefulSet { return &appsv1.StatefulSet{} }, Gate: c.gate,
		Observe: func(_ context.Context, set *appsv1.StatefulSet) (Input, bool, error) {
			return c.observe(set), true, nil
		},
		Decide: Decide, Apply: c.apply,
		After: func(in Input, plan Plan) time.Duration { return pass.Until(plan.Wake, in.Now) },
	}
}

// observe reads the input of a decision. All of it is shared with the cache.
func (c *Controller) observe(set *appsv1.StatefulSet) Input {
	in := Input{Now: c.now(), Set: set, Pods: c.pods.Members(podset.Owner(set.UID))}
	if set.DeletionTimestamp != nil {
		return in
	}
	in.Revisions = append(c.revisions.Owned(set.UID), c.revisions.Unowned(set.Namespace)...)
	in.Text = c.texts.Of(set, &set.Spec.Template)
	in.Orphans = c.pods.Orphans(set.Namespace, owner(set).Selector)
	in.Claims = map[string]*corev1.PersistentVolumeClaim{}
	for _, owned := range c.claims.Owned(set.UID) {
		in.Claims[owned.Name] = owned
	}
	for i := range set.Spec.VolumeClaimTemplates {
		stem := storeindex.Key(set.Namespace, claimStem(claimName(set, i, 0)))
		for _, existing := range storeindex.Find[corev1.PersistentVolumeClaim](c.storage, byStem, stem) {
			in.Claims[existing.Name] = existing
		}
	}
	return in
}

// byStem is the index of claims by namespace and name without the ordinal.
const byStem = "keelson.dev/claim-stem"

func indexClaims(store toolscache.Indexer) error {
	return storeindex.Add(store, byStem, func(existing *corev1.PersistentVolumeClaim) []string {
		return []string{storeindex.Key(existing.Namespace, claimStem(existing.Name))}
	})
}

// apply carries out the plan in the order of its fields. What the pass came to is in the status even where it failed.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	if len(plan.Adopt)+len(plan.Release) > 0 {
		return c.settle(ctx, owner(in.Set), plan)
	}
	if in.Set.DeletionTimestamp == nil {
		err := c.history.Apply(ctx, historyOf(in), plan.History)
		if errors.Is(err, controllerrevision.ErrCollision) {
			return errors.Join(c.writeStatus(ctx, in.Set, afterCollision(in)), pass.ErrStale)
		}
		if err != nil || !plan.History.Claims.Settled() {
			return err
		}
	}
	if err := c.act(ctx, in, plan); err != nil {
		return errors.Join(err, c.writeStatus(ctx, in.Set, afterFailure(in, plan)))
	}
	if err := c.writeStatus(ctx, in.Set, plan.Status); err != nil {
		return err
	}
	return errors.Join(plan.Problem, c.history.Delete(ctx, in.Set.UID, plan.Forget))
}

// act changes Pods and claims.
func (c *Controller) act(ctx context.Context, in Input, plan Plan) error {
	for _, relabelling := range plan.Relabel {
		if err := c.relabel(ctx, in.Set, relabelling); err != nil {
			return err
		}
	}
	if err := c.changeOwners(ctx, in.Set, plan.Owners); err != nil {
		return err
	}
	if err := c.makeClaims(ctx, in.Set, plan.Storage); err != nil {
		return err
	}
	if err := c.create(ctx, in.Set, plan.Create); err != nil {
		return err
	}
	return c.delete(ctx, in.Set, plan.Delete)
}

// settle adopts and releases Pods.
func (c *Controller) settle(ctx context.Context, owner claim.Owner, plan Plan) error {
	if len(plan.Adopt) > 0 {
		if err := claim.Confirm(ctx, c.live, owner); err != nil {
			return err
		}
	}
	var errs []error
	for _, pod := range plan.Adopt {
		errs = append(errs, claim.IgnoreGone(c.ops.PatchOwner(ctx, owner.UID, pod, claim.AdoptPatch(owner, pod))))
	}
	for _, pod := range plan.Release {
		errs = append(errs, claim.IgnoreGone(c.ops.PatchOwner(ctx, owner.UID, pod, claim.ReleasePatch(owner, pod))))
	}
	return errors.Join(errs...)
}

func (c *Controller) writeStatus(ctx context.Context, set *appsv1.StatefulSet,
	status appsv1.StatefulSetStatus) error {
	of := func(set *appsv1.StatefulSet) *appsv1.StatefulSetStatus { return &set.Status }
	_, err := write.Status(ctx, c.sets, set, status, of)
	return err
}
