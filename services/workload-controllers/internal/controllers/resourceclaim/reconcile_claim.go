package resourceclaim

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/write"
)

// claimSteps are what a pass over a claim consists of.
func (c *Controller) claimSteps() *pass.Steps[*resourcev1.ResourceClaim, ClaimInput, ClaimPlan] {
	return &pass.Steps[*resourcev1.ResourceClaim, ClaimInput, ClaimPlan]{
		Reader: c.client, New: func() *resourcev1.ResourceClaim { return &resourcev1.ResourceClaim{} }, Gate: c.gate,
		Observe: c.observeClaim, Decide: DecideClaim, Apply: c.applyClaim,
	}
}

// observeClaim looks at the Pods that the claim is reserved for, and at the Pod that it was created for. A Pod
// missing from the cache may be new: the apiserver decides whether it exists.
func (c *Controller) observeClaim(ctx context.Context, claim *resourcev1.ResourceClaim) (ClaimInput, bool, error) {
	in := ClaimInput{Claim: claim, Ended: map[types.UID]bool{}}
	for _, consumer := range claim.Status.ReservedFor {
		if !isPod(consumer) {
			continue
		}
		ended, err := c.hasEnded(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: consumer.Name}, consumer.UID)
		if err != nil {
			return in, false, err
		}
		in.Ended[consumer.UID] = ended
	}
	if owner := podOf(claim); owner != nil {
		// If the owner is gone, podgc deletes the claim.
		pod := storeindex.Get[corev1.Pod](c.stores.pods, storeindex.Key(claim.Namespace, owner.Name))
		in.OwnerEnded = pod != nil && (pod.UID != owner.UID || hasEnded(pod))
	}
	return in, true, nil
}

// hasEnded reports whether the Pod of that UID no longer needs its claims.
func (c *Controller) hasEnded(ctx context.Context, key client.ObjectKey, uid types.UID) (bool, error) {
	pod := storeindex.Get[corev1.Pod](c.stores.pods, storeindex.Key(key.Namespace, key.Name))
	if pod == nil || pod.UID != uid {
		pod = &corev1.Pod{}
		switch err := c.live.Get(ctx, key, pod); {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("reading Pod %s: %w", key.Name, err)
		}
	}
	return pod.UID != uid || hasEnded(pod), nil
}

// applyClaim carries out the plan. It removes the finalizer only from the version that its first write left: an
// allocator adds the finalizer before it allocates devices.
func (c *Controller) applyClaim(ctx context.Context, in ClaimInput, plan ClaimPlan) error {
	next := in.Claim.DeepCopy()
	if !apiequality.Semantic.DeepEqual(in.Claim.Status, plan.Status) {
		next.Status = plan.Status
		err := write.Do(c.gate, next.UID, "resourceclaim.status", func() (types.UID, gate.Seen, error) {
			if err := c.client.Status().Update(ctx, next); err != nil {
				return "", nil, err
			}
			return next.UID, gate.Written(c.stores.claims, next), nil
		})
		if err != nil {
			return goneIsFine(err, "freeing the claim")
		}
	}
	if plan.Unprotect {
		next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == resourcev1.Finalizer })
		if err := c.writer.Update(ctx, next.UID, next); err != nil {
			return goneIsFine(err, "letting go of the claim")
		}
	}
	if plan.Delete {
		return goneIsFine(c.writer.Delete(ctx, next.UID, next), "deleting the claim")
	}
	return nil
}

func goneIsFine(err error, what string) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
