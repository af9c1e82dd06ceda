// Package evict carries out how a Pod comes to its room: it nominates the Pod for the node, then marks and deletes the
// Pods whose room it takes, each with its own grace period.
//
// The nomination comes first. A process that ends in the middle leaves behind it a Pod that says for which node it
// waits, and its successor takes no more room there than is missing.
package evict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/typed/core/v1"

	"keelson.dev/kit/election"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/scheduler/internal/bind"
)

const (
	// maxInFlight is how many evictions may be under way.
	maxInFlight = 32
	// requestTimeout bounds one request. A request is not cut short when the process stops or loses its lead.
	requestTimeout = 10 * time.Second
	// maxTries is how often a victim that changed meanwhile is read again, tryPause the pause between.
	maxTries = 5
	tryPause = 200 * time.Millisecond
)

// Eviction is a Pod, the node that it is to be nominated for, and the Pods that are to make room there.
type Eviction struct {
	Pod       *corev1.Pod
	Node      string
	Condition corev1.PodCondition
	Victims   []*corev1.Pod
}

// Outcome says what became of an Eviction.
type Outcome struct {
	Eviction
	// Evicted are the victims that were deleted. Spared are those that stay, for Err; others had gone by themselves.
	Evicted []*corev1.Pod
	Spared  []types.UID
	Err     error
}

// Nominate writes the condition and the nominated node of a Pod.
type Nominate func(ctx context.Context, pod *corev1.Pod, condition corev1.PodCondition, node string) error

// Evictor evicts in the background.
type Evictor struct {
	client   v1.PodsGetter
	nominate Nominate
	terms    *bind.Terms
	report   func(Outcome)
	slots    chan struct{}
	wg       sync.WaitGroup
}

// New returns an Evictor that calls report, from any goroutine, with the outcome of each eviction.
func New(client v1.PodsGetter, nominate Nominate, terms *bind.Terms, report func(Outcome)) *Evictor {
	return &Evictor{client: client, nominate: nominate, terms: terms, report: report,
		slots: make(chan struct{}, maxInFlight)}
}

// Evict starts an eviction and returns at once.
func (e *Evictor) Evict(ctx context.Context, eviction Eviction) {
	ctx = e.terms.Writing(context.WithoutCancel(ctx), eviction.Pod)
	e.wg.Go(func() {
		e.slots <- struct{}{}
		out := e.evict(ctx, eviction)
		<-e.slots
		e.report(out)
	})
}

// Wait returns when the evictions that were started before it are done.
func (e *Evictor) Wait() { e.wg.Wait() }

func (e *Evictor) evict(ctx context.Context, eviction Eviction) Outcome {
	out := Outcome{Eviction: eviction}
	if err := e.nominate(ctx, eviction.Pod, eviction.Condition, eviction.Node); err != nil {
		out.Err = err
		for _, victim := range eviction.Victims {
			out.Spared = append(out.Spared, victim.UID)
		}
		return out
	}
	for _, victim := range eviction.Victims {
		evicted, err := e.evictOne(ctx, eviction.Pod, victim)
		switch {
		case err != nil:
			out.Spared = append(out.Spared, victim.UID)
			out.Err = errors.Join(out.Err, err)
		case evicted:
			out.Evicted = append(out.Evicted, victim)
		}
	}
	return out
}

// evictOne marks and deletes a victim. It reports false for one that goes without that. It reads a victim again that
// has changed since the decision, or may have: one that has ended meanwhile stays as it is.
func (e *Evictor) evictOne(ctx context.Context, pod, victim *corev1.Pod) (evicted bool, err error) {
	now := victim
	for try := range maxTries {
		if try > 0 {
			time.Sleep(tryPause)
			if now, err = e.get(ctx, victim); apierrors.IsNotFound(err) {
				return evicted, nil
			} else if err != nil {
				continue
			}
		}
		if ends(now, victim) {
			return evicted, nil
		}
		if !marked(now) {
			if now, err = e.mark(ctx, pod, now); err != nil {
				if refused(err) {
					break
				}
				continue
			}
		}
		if err = e.delete(ctx, now); err == nil {
			return true, nil
		}
		if refused(err) {
			break
		}
		evicted = evicted || !apierrors.IsConflict(err) // the answer may have been lost
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return false, err
}

// ends reports whether a Pod goes without being evicted: it is another one by now, is being deleted, or has ended.
func ends(now, victim *corev1.Pod) bool {
	return now.UID != victim.UID || now.DeletionTimestamp != nil || now.Status.Phase == corev1.PodSucceeded ||
		now.Status.Phase == corev1.PodFailed
}

func marked(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
			c.Reason == corev1.PodReasonPreemptionByScheduler {
			return true
		}
	}
	return false
}

// refused reports whether to ask again is vain.
func refused(err error) bool {
	return errors.Is(err, election.ErrNotLeading) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) ||
		apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

func (e *Evictor) get(ctx context.Context, victim *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	now, err := e.client.Pods(victim.Namespace).Get(ctx, victim.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("looking at victim %s/%s: %w", victim.Namespace, victim.Name, err)
	}
	return now, nil
}

// mark says on the victim why it goes, before it does, and returns it as it is then.
func (e *Evictor) mark(ctx context.Context, pod, victim *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": victim.UID, "resourceVersion": victim.ResourceVersion},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason:             corev1.PodReasonPreemptionByScheduler,
			Message:            pod.Spec.SchedulerName + ": preempting to accommodate a higher priority pod",
			LastTransitionTime: metav1.NewTime(time.Now()), ObservedGeneration: victim.Generation,
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the condition DisruptionTarget: %w", err)
	}
	var now *corev1.Pod
	err = failpoint.Around("scheduler/victim.status", func() (err error) {
		now, err = e.client.Pods(victim.Namespace).Patch(ctx, victim.Name, types.StrategicMergePatchType, body,
			metav1.PatchOptions{}, "status")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("marking victim %s/%s: %w", victim.Namespace, victim.Name, err)
	}
	return now, nil
}

// delete deletes the very version of the victim that was looked at, with its own grace period.
func (e *Evictor) delete(ctx context.Context, victim *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := failpoint.Around("scheduler/victim.delete", func() error {
		return e.client.Pods(victim.Namespace).Delete(ctx, victim.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &victim.UID, ResourceVersion: &victim.ResourceVersion}})
	})
	if err != nil {
		return fmt.Errorf("deleting victim %s/%s: %w", victim.Namespace, victim.Name, err)
	}
	return nil
}
