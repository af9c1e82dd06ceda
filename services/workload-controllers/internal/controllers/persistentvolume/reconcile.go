package persistentvolume

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/defaultclass"
	"keelson.dev/kit/events"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/write"
)

// recheck is when to look again at a claim while another pass has reserved a volume that suits.
const recheck = time.Second

// recorder emits events; events.Recorder implements it.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller binds claims to volumes.
type Controller struct {
	client   client.Client // reads from the cache
	live     client.Reader // reads from the apiserver
	stores   stores
	free     *free
	gate     *gate.Gate
	claims   *write.Writer
	volumes  *write.Writer
	recorder recorder
	now      func() time.Time
}

// observedClaim is what a pass over a claim has seen.
type observedClaim struct {
	ClaimInput
	// contested says that another pass has reserved a volume that would suit.
	contested bool
	// unheard says that nothing in the API shows that the provisioner of the claim's class runs; only explainClaims
	// sets it.
	unheard bool
}

// Reconcile makes a pass over a claim, or over a volume, which has no namespace.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.Namespace == "" {
		return c.volumeSteps().Reconcile(ctx, request)
	}
	return c.claimSteps().Reconcile(ctx, request)
}

func (c *Controller) claimSteps() *pass.Steps[*corev1.PersistentVolumeClaim, observedClaim, ClaimPlan] {
	return &pass.Steps[*corev1.PersistentVolumeClaim, observedClaim, ClaimPlan]{
		Reader: c.client, New: func() *corev1.PersistentVolumeClaim { return &corev1.PersistentVolumeClaim{} },
		Gate: c.gate, Observe: c.observeClaim,
		Decide: func(in observedClaim) ClaimPlan { return DecideClaim(in.ClaimInput) }, Apply: c.applyClaim,
		After: func(in observedClaim, plan ClaimPlan) time.Duration {
			if in.contested && plan.Volume == nil {
				return recheck
			}
			return 0
		},
	}
}

// observeClaim reads the input of a decision, and reserves the free volume that the claim may get.
func (c *Controller) observeClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (observedClaim, bool,
	error) {
	in, err := c.look(ctx, claim)
	if err == nil && TakesFree(in.ClaimInput) {
		in.Free, in.contested = c.free.take(claim, c.mayBeGiven)
	}
	return in, err == nil, err
}

// look reads what a claim's decision depends on apart from free volumes. All of it is shared with the cache.
func (c *Controller) look(ctx context.Context, claim *corev1.PersistentVolumeClaim) (observedClaim, error) {
	in := observedClaim{ClaimInput: ClaimInput{Claim: claim,
		Class: storeindex.Get[storagev1.StorageClass](c.stores.classes, classOf(claim)),
		Claiming: storeindex.Find[corev1.PersistentVolume](c.stores.volumes, byClaim,
			storeindex.Key(claim.Namespace, claim.Name)),
	}}
	if !saysClass(claim) {
		classes := storeindex.All[storagev1.StorageClass](c.stores.classes)
		in.Default, _ = defaultclass.Among(classes, defaultclass.Storage)
	}
	if name := claim.Spec.VolumeName; name != "" {
		in.Volume = storeindex.Get[corev1.PersistentVolume](c.stores.volumes, name)
		if in.Volume == nil && isBindingComplete(claim) {
			// Only the apiserver can confirm that data is lost.
			found := &corev1.PersistentVolume{}
			if err := c.live.Get(ctx, client.ObjectKey{Name: name}, found); client.IgnoreNotFound(err) != nil {
				return in, fmt.Errorf("looking for PersistentVolume %s: %w", name, err)
			} else if err == nil {
				in.Volume = found
			}
		}
	}
	if name := claim.Annotations[annotationNode]; name != "" && isWaiting(claim) {
		node, err := c.node(ctx, name)
		if err != nil {
			return in, err
		}
		in.Node = node
	}
	return in, nil
}

// node returns a Node; nil if the apiserver, too, does not have it.
func (c *Controller) node(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	for _, reader := range []client.Reader{c.client, c.live} {
		err := reader.Get(ctx, client.ObjectKey{Name: name}, node)
		if err == nil {
			return node, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("looking for Node %s: %w", name, err)
		}
	}
	return nil, nil
}

// mayBeGiven reports whether a free volume is unchanged in the cache, and no bound claim still names it: users may
// have cleared its reference.
func (c *Controller) mayBeGiven(volume *corev1.PersistentVolume) bool {
	now := storeindex.Get[corev1.PersistentVolume](c.stores.volumes, volume.Name)
	if now == nil || now.ResourceVersion != volume.ResourceVersion {
		return false
	}
	for _, claim := range storeindex.Find[corev1.PersistentVolumeClaim](c.stores.claims, byVolume, volume.Name) {
		if isBindingComplete(claim) {
			return false
		}
	}
	return true
}

// applyClaim carries out the plan in the order of its fields and stops at the first failure.
func (c *Controller) applyClaim(ctx context.Context, in observedClaim, plan ClaimPlan) error {
	given := false
	if in.Free != nil {
		defer func() {
			c.free.settle(in.Free.Name, func() *corev1.PersistentVolume {
				if given {
					return nil
				}
				return storeindex.Get[corev1.PersistentVolume](c.stores.volumes, in.Free.Name)
			})
		}()
	}
	claim := in.Claim
	for _, e := range plan.Events {
		c.recorder.Record(claim, e)
	}
	if plan.Create != nil {
		if err := c.create(ctx, claim, plan.Create); err != nil {
			return err
		}
	}
	if plan.Volume != nil {
		if err := c.volumes.Update(ctx, claim.UID, plan.Volume.DeepCopy()); err != nil {
			return gone(err, "giving the claim PersistentVolume "+plan.Volume.Name)
		}
		given = true
	}
	if plan.Claim != nil {
		claim = plan.Claim.DeepCopy()
		if err := c.claims.Update(ctx, claim.UID, claim); err != nil {
			return gone(err, "writing the claim")
		}
	}
	_, err := write.Status(ctx, c.claims, claim, plan.Status,
		func(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimStatus { return &c.Status })
	return err
}

// create creates a volume. If it exists already, an earlier pass created it for the claim, or it belongs to another
// user.
func (c *Controller) create(ctx context.Context, claim *corev1.PersistentVolumeClaim,
	volume *corev1.PersistentVolume) error {
	err := c.volumes.Create(ctx, claim.UID, volume.DeepCopy())
	switch {
	case err == nil:
		c.recorder.Record(claim, provisioned(volume.Name))
		return nil
	case !apierrors.IsAlreadyExists(err):
		c.recorder.Record(claim, provisioningFailed("creating PersistentVolume %s: %v", volume.Name, err))
		return fmt.Errorf("creating PersistentVolume %s: %w", volume.Name, err)
	}
	existing := &corev1.PersistentVolume{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(volume), existing); err != nil {
		return fmt.Errorf("looking at the PersistentVolume that has the name: %w", err)
	}
	if names(existing, claim) {
		c.gate.Await(claim.UID, existing.UID, gate.Written(c.volumes.Store, existing))
		return pass.ErrStale
	}
	c.recorder.Record(claim, provisioningFailed("the name %s is that of a PersistentVolume of somebody else",
		volume.Name))
	return fmt.Errorf("the name %s is that of a PersistentVolume of somebody else", volume.Name)
}

// gone treats an object that no longer exists as a sign of an outdated view.
func gone(err error, doing string) error {
	if apierrors.IsNotFound(err) {
		return pass.ErrStale
	}
	return fmt.Errorf("%s: %w", doing, err)
}
