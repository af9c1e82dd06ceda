// Package podops creates Pods, alike or each of its own, and deletes them by reason, for the controllers. Nothing
// else in this service does.
package podops

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/rank"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Parallel is how many requests of one call are under way at once.
const Parallel = 16

// Operator writes Pods on behalf of one controller.
type Operator struct {
	// Client reaches the apiserver; FieldManager is the controller's name.
	Client       corev1client.PodsGetter
	FieldManager string
	// Gate is shut for an owner until Feed shows its writes.
	Gate *gate.Gate
	Feed *podfeed.Feed
	Log  *zap.Logger
}

// Outcome is what became of one Pod.
type Outcome struct {
	Name string
	Err  error
}

// Create makes n Pods, alike or each of its own, in batches that double: the first failures end it, so that a refusal
// costs few requests. The outcomes stand in the order of the Pods, as far as it got. pod makes what a Pod stands on,
// and its error is the Pod's. It is called at once for several Pods.
func (o *Operator) Create(
	ctx context.Context, owner types.UID, n int, pod func(i int) (*corev1.Pod, error),
) []Outcome {
	outcomes := make([]Outcome, 0, n)
	for batch := 1; len(outcomes) < n; batch *= 2 {
		first := len(outcomes)
		results := inParallel(min(batch, n-first), func(i int) Outcome {
			prototype, err := pod(first + i)
			if err != nil {
				return Outcome{Name: prototype.Name, Err: err}
			}
			return o.create(ctx, owner, prototype)
		})
		outcomes = append(outcomes, results...)
		if Failure(results) != nil {
			break
		}
	}
	return outcomes
}

func (o *Operator) create(ctx context.Context, owner types.UID, prototype *corev1.Pod) Outcome {
	outcome := Outcome{Name: prototype.Name}
	outcome.Err = write.Do(o.Gate, owner, "pod.create", func() (types.UID, gate.Seen, error) {
		created, err := o.Client.Pods(prototype.Namespace).Create(ctx, prototype,
			metav1.CreateOptions{FieldManager: o.FieldManager})
		if err != nil {
			return "", nil, err
		}
		outcome.Name = created.Name
		return created.UID, o.Feed.Written(created), nil
	})
	return outcome
}

// Delete asks the Pods to end within their own grace periods. A Pod that is gone, or whose name another Pod has,
// counts as deleted. The outcomes stand in the order of the Pods.
func (o *Operator) Delete(ctx context.Context, owner types.UID, reason Reason, pods []rank.Pod) []Outcome {
	return inParallel(len(pods), func(i int) Outcome { return o.delete(ctx, owner, reason, pods[i]) })
}

func (o *Operator) delete(ctx context.Context, owner types.UID, reason Reason, pod rank.Pod) Outcome {
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	return Outcome{Name: pod.Name, Err: o.deleteIf(ctx, owner, reason, name, metav1.Preconditions{UID: &pod.UID})}
}

// DeleteUnchanged asks a Pod to end within its own grace period, provided that it is still at its resource version. A
// Pod that is gone counts as deleted; for one that is another by now the error is a conflict.
func (o *Operator) DeleteUnchanged(ctx context.Context, owner types.UID, reason Reason, pod *corev1.Pod) error {
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	return o.deleteIf(ctx, owner, reason, name,
		metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
}

func (o *Operator) deleteIf(ctx context.Context, owner types.UID, reason Reason, pod types.NamespacedName,
	preconditions metav1.Preconditions) error {
	return write.Do(o.Gate, owner, "pod.delete", func() (types.UID, gate.Seen, error) {
		options := metav1.DeleteOptions{Preconditions: &preconditions}
		err := o.Client.Pods(pod.Namespace).Delete(ctx, pod.Name, options)
		// Without a version the only conflict is that another Pod has the name.
		another := preconditions.ResourceVersion == nil && apierrors.IsConflict(err)
		if err != nil && !apierrors.IsNotFound(err) && !another {
			return "", nil, err
		}
		if err == nil {
			deletions.WithLabelValues(o.FieldManager, reason.word).Inc()
			o.Log.Debug("deleted Pod", zap.String("namespace", pod.Namespace), zap.String("name", pod.Name),
				zap.String("uid", string(*preconditions.UID)), zap.Stringer("reason", reason))
		}
		return *preconditions.UID, o.Feed.Deleted(*preconditions.UID), nil
	})
}

// PatchOwner changes the Pod's owner references by a merge patch that names its UID.
func (o *Operator) PatchOwner(ctx context.Context, owner types.UID, pod *corev1.Pod, patch []byte) error {
	if err := o.Patch(ctx, owner, pod, patch); err != nil {
		return fmt.Errorf("changing the owner of Pod %s: %w", pod.Name, err)
	}
	return nil
}

// Patch changes the Pod by a merge patch that names its UID.
func (o *Operator) Patch(ctx context.Context, owner types.UID, pod *corev1.Pod, patch []byte) error {
	return write.Do(o.Gate, owner, "pod.patch", func() (types.UID, gate.Seen, error) {
		return o.patch(ctx, pod, patch)
	})
}

// PatchFinalizers changes the Pods' finalizers, each by a patch of its own. A Pod that is gone needs none.
func (o *Operator) PatchFinalizers(
	ctx context.Context, owner types.UID, pods []*corev1.Pod, patch func(*corev1.Pod) []byte,
) error {
	return Failure(inParallel(len(pods), func(i int) Outcome {
		pod := pods[i]
		err := write.Do(o.Gate, owner, "pod.finalizers", func() (types.UID, gate.Seen, error) {
			return o.patch(ctx, pod, patch(pod))
		})
		if err = claim.IgnoreGone(err); err != nil {
			err = fmt.Errorf("changing the finalizers of Pod %s: %w", pod.Name, err)
		}
		return Outcome{Name: pod.Name, Err: err}
	}))
}

func (o *Operator) patch(ctx context.Context, pod *corev1.Pod, patch []byte) (types.UID, gate.Seen, error) {
	patched, err := o.Client.Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{FieldManager: o.FieldManager})
	if err != nil {
		return "", nil, err
	}
	return patched.UID, o.Feed.Written(patched), nil
}

// Failure returns the first error among the outcomes.
func Failure(outcomes []Outcome) error {
	for _, outcome := range outcomes {
		if outcome.Err != nil {
			return outcome.Err
		}
	}
	return nil
}

// inParallel calls work for 0 to n-1, Parallel of them at once, on as few goroutines: each grows its stack.
func inParallel(n int, work func(int) Outcome) []Outcome {
	outcomes := make([]Outcome, n)
	var next atomic.Int64
	var done sync.WaitGroup
	for range min(n, Parallel) {
		done.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				outcomes[i] = work(i)
			}
		})
	}
	done.Wait()
	return outcomes
}
