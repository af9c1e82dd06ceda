package statefulset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/rank"
)

// relabel sets labels of a Pod.
func (c *Controller) relabel(ctx context.Context, set *appsv1.StatefulSet, r Relabelling) error {
	if err := claim.IgnoreGone(c.ops.Patch(ctx, set.UID, r.Pod, labelPatch(r))); err != nil {
		return fmt.Errorf("labelling Pod %s: %w", r.Pod.Name, err)
	}
	return nil
}

// unclaimedError is why a Pod lacks a claim.
type unclaimedError struct{ error }

func (e unclaimedError) Unwrap() error { return e.error }

// create creates Pods, each after its claims. Neither a Pod whose claims cannot be created nor one whose name is
// taken holds up the others. After a refused Pod, the Pods after it get no claims either.
func (c *Controller) create(ctx context.Context, set *appsv1.StatefulSet, creations []Creation) error {
	var errs []error
	var taken []*corev1.Pod
	for refused := false; len(creations) > 0 && !refused; {
		outcomes := c.ops.Create(ctx, set.UID, len(creations), func(i int) (*corev1.Pod, error) {
			if err := c.makeClaims(ctx, set, creations[i].Claims); err != nil {
				return creations[i].Pod, unclaimedError{err}
			}
			return creations[i].Pod, nil
		})
		for i, outcome := range outcomes {
			switch err := outcome.Err; {
			case err == nil:
				c.recorder.Record(set, podCreated(set, outcome.Name))
			case errors.As(err, &unclaimedError{}):
				errs = append(errs, err)
			case apierrors.IsAlreadyExists(err):
				taken = append(taken, creations[i].Pod)
			case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
				refused = true
			default:
				refused = true
				c.recorder.Record(set, podRefused(set, outcome.Name, err))
				errs = append(errs, fmt.Errorf("creating Pod %s: %w", outcome.Name, err))
			}
		}
		creations = creations[len(outcomes):]
	}
	for _, pod := range taken {
		errs = append(errs, c.resolve(ctx, set, pod))
	}
	return errors.Join(errs...)
}

// resolve asks the apiserver who owns the Pod with the planned Pod's name: the cache may be behind. While that Pod
// exists, it is not replaced.
func (c *Controller) resolve(ctx context.Context, set *appsv1.StatefulSet, planned *corev1.Pod) error {
	existing := &corev1.Pod{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(planned), existing); apierrors.IsNotFound(err) {
		return pass.ErrStale
	} else if err != nil {
		return fmt.Errorf("looking at the Pod that has the name: %w", err)
	}
	claimant, its := owner(set), metav1.GetControllerOfNoCopy(existing)
	switch {
	case its != nil && its.UID == set.UID:
		c.gate.Await(set.UID, existing.UID, c.ops.Feed.Written(existing))
		return pass.ErrStale
	case existing.DeletionTimestamp != nil:
		return pass.ErrStale
	case its == nil && claimant.Selector.Matches(labels.Set(existing.Labels)):
		return errors.Join(c.settle(ctx, claimant, Plan{Adopt: []*corev1.Pod{existing}}), pass.ErrStale)
	}
	err := fmt.Errorf("a Pod of that name exists and is not the StatefulSet's")
	c.recorder.Record(set, podRefused(set, planned.Name, err))
	return fmt.Errorf("creating Pod %s: %w", planned.Name, err)
}

// delete deletes Pods. For a deletion that follows from the set's spec it first asks the apiserver to confirm the
// spec: the cache may be outdated.
func (c *Controller) delete(ctx context.Context, set *appsv1.StatefulSet, deletions []Deletion) error {
	if len(deletions) == 0 {
		return nil
	}
	if err := c.confirm(ctx, set); err != nil {
		return err
	}
	byReason := map[Reason][]rank.Pod{}
	var errs []error
	for _, d := range deletions {
		switch d.Reason {
		case ReasonNeverReady:
			errs = append(errs, c.deleteNeverReady(ctx, set, d.Pod))
			continue
		case ReasonEnded:
			c.recorder.Record(set, replaced(set, d.Pod))
		case ReasonScaledDown, ReasonOutdated:
		}
		byReason[d.Reason] = append(byReason[d.Reason], rank.Of(d.Pod))
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		outcomes := c.ops.Delete(ctx, set.UID, podReasons[reason], byReason[reason])
		for _, outcome := range outcomes {
			errs = append(errs, c.ended(set, outcome.Name, outcome.Err))
		}
	}
	return errors.Join(errs...)
}

// podReasons are the reasons in logs and metrics.
var podReasons = map[Reason]podops.Reason{
	ReasonScaledDown: podops.ScaledDown, ReasonEnded: podops.Recreated, ReasonOutdated: podops.Outdated,
}

// deleteNeverReady deletes a Pod that is still as it was observed: it may have become ready.
func (c *Controller) deleteNeverReady(ctx context.Context, set *appsv1.StatefulSet, pod *corev1.Pod) error {
	err := c.ops.DeleteUnchanged(ctx, set.UID, podops.Outdated, pod)
	if apierrors.IsConflict(err) {
		return err
	}
	if err == nil {
		c.recorder.Record(set, neverWasReady(set, pod.Name))
	}
	return c.ended(set, pod.Name, err)
}

// ended records the result of a Pod's deletion.
func (c *Controller) ended(set *appsv1.StatefulSet, pod string, err error) error {
	if err != nil {
		c.recorder.Record(set, podKept(set, pod, err))
		return fmt.Errorf("deleting Pod %s: %w", pod, err)
	}
	c.recorder.Record(set, podDeleted(set, pod))
	return nil
}

// confirm asks the apiserver whether the set is the one that was observed, with the same spec.
func (c *Controller) confirm(ctx context.Context, set *appsv1.StatefulSet) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(set), live); apierrors.IsNotFound(err) {
		return pass.ErrStale
	} else if err != nil {
		return fmt.Errorf("confirming the spec before a deletion: %w", err)
	}
	if live.UID != set.UID || live.Generation != set.Generation || live.DeletionTimestamp != nil {
		return pass.ErrStale
	}
	return nil
}
