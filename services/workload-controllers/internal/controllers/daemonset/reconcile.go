package daemonset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/pass"
	"keelson.dev/kit/seconds"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/rank"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Controller keeps a Pod of every DaemonSet on each of its nodes.
type Controller struct {
	client    client.Client // reads from the cache
	live      client.Reader // reads from the apiserver
	writer    *write.Writer
	history   *controllerrevision.Writer
	texts     controllerrevision.Texts
	revisions ownerindex.Index[*appsv1.ControllerRevision]
	placement *Placement
	pods      *podset.Index
	present   podset.Figure // the Pods that a decision looks at
	owners    wake.Owners
	ops       *podops.Operator
	gate      *gate.Gate
	recorder  podops.Recorder
	now       func() time.Time

	mu     sync.Mutex // guards memory
	memory map[types.UID]memory
}

// memory is what this process alone knows of a DaemonSet.
type memory struct {
	nodes    int // that it runs on or keeps Pods on
	written  time.Time
	failures map[string]Failure
}

// steps are what a pass over a DaemonSet consists of.
func (c *Controller) steps() *pass.Steps[*appsv1.DaemonSet, Input, Plan] {
	return &pass.Steps[*appsv1.DaemonSet, Input, Plan]{
		Reader: c.client, New: func() *appsv1.DaemonSet { return &appsv1.DaemonSet{} }, Gate: c.gate,
		Observe: c.observe, Decide: Decide, Apply: c.apply,
		After: func(in Input, plan Plan) time.Duration { return pass.Until(plan.Wake, in.Now) },
	}
}

// observe reads the input of a decision. All of it is shared with the cache.
func (c *Controller) observe(_ context.Context, set *appsv1.DaemonSet) (Input, bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		err = fmt.Errorf("reading spec.selector of DaemonSet %s/%s: %w", set.Namespace, set.Name, err)
		return Input{}, false, reconcile.TerminalError(err)
	}
	now := c.now()
	counts := c.pods.Observe(set.UID, podset.Spec{
		Selector: selector, Template: set.Spec.Template.Labels,
		MinReady: seconds.Of(set.Spec.MinReadySeconds),
	}, now)
	known := c.recall(set.UID)
	in := Input{
		Now: now, DaemonSet: set, Places: c.placement.Of(set),
		Revisions: append(c.revisions.Owned(set.UID), c.revisions.Unowned(set.Namespace)...),
		Text:      c.texts.Of(set, &set.Spec.Template),
		Pods:      c.pods.Pods(podset.Owner(set.UID), c.present), Orphans: c.pods.Orphans(set.Namespace, selector),
		Unmatched: counts.Unmatched, NextAvailable: counts.NextAvailable,
		Failures: known.failures, Written: known.written,
	}
	if nodes := len(in.Places.list); nodes != known.nodes {
		c.remember(set.UID, func(m *memory) { m.nodes = nodes })
	}
	in.Missing = c.missing(in.Places, in.Pods)
	return in, true, nil
}

// missing returns the nodes that Pods are on or meant for and that do not exist.
func (c *Controller) missing(places *Places, pods []*corev1.Pod) map[string]bool {
	var missing map[string]bool
	for _, pod := range pods {
		node := nodeOf(pod)
		if _, ok := places.at[node]; ok || node == "" || c.placement.Exists(node) {
			continue
		}
		if missing == nil {
			missing = map[string]bool{}
		}
		missing[node] = true
	}
	return missing
}

// apply carries out the plan in the order of its fields. What the pass came to is in the status even where it failed.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	err := errors.Join(c.ops.Settle(ctx, c.live, owner(in.DaemonSet), plan.Adopt, plan.Release),
		c.history.Apply(ctx, historyOf(&in), plan.History))
	if errors.Is(err, controllerrevision.ErrCollision) {
		return errors.Join(c.writeStatus(ctx, in, afterCollision(in.DaemonSet)), pass.ErrStale)
	}
	if err != nil || !plan.settled() {
		return err
	}
	err = errors.Join(c.create(ctx, in, plan), c.delete(ctx, in, plan.Delete))
	if err == nil {
		err = c.history.Delete(ctx, in.DaemonSet.UID, plan.Surplus)
	}
	if plan.WriteStatus {
		err = errors.Join(err, c.writeStatus(ctx, in, plan.Status))
	}
	return err
}

// create makes the Pods of the current revision.
func (c *Controller) create(ctx context.Context, in Input, plan Plan) error {
	if len(plan.Create) == 0 {
		return nil
	}
	alike := Prototype(in.DaemonSet, plan.History.Current.Labels[controllerrevision.HashLabel])
	outcomes := c.ops.Create(ctx, in.DaemonSet.UID, len(plan.Create), func(i int) (*corev1.Pod, error) {
		return ForNode(alike, plan.Create[i]), nil
	})
	podops.RecordCreated(c.recorder, in.DaemonSet, outcomes)
	err := podops.Failure(outcomes)
	if err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	c.recorder.Record(in.DaemonSet, createFailed(err))
	return fmt.Errorf("creating Pods: %w", err)
}

// delete ends Pods, those of one reason together.
func (c *Controller) delete(ctx context.Context, in Input, deletions []Deletion) error {
	byReason := map[podops.Reason][]rank.Pod{}
	for _, d := range deletions {
		if d.Event != nil {
			c.recorder.Record(in.DaemonSet, *d.Event)
		}
		if d.Failed != "" {
			c.rememberFailure(in, d.Failed)
		}
		byReason[d.Reason] = append(byReason[d.Reason], rank.Of(d.Pod))
	}
	var errs []error
	for reason, pods := range byReason {
		outcomes := c.ops.Delete(ctx, in.DaemonSet.UID, reason, pods)
		podops.RecordDeleted(c.recorder, in.DaemonSet, outcomes)
		if err := podops.Failure(outcomes); err != nil {
			c.recorder.Record(in.DaemonSet, deleteFailed(err))
			errs = append(errs, fmt.Errorf("deleting Pods (%s): %w", reason, err))
		}
	}
	return errors.Join(errs...)
}

func (c *Controller) writeStatus(ctx context.Context, in Input, status appsv1.DaemonSetStatus) error {
	of := func(set *appsv1.DaemonSet) *appsv1.DaemonSetStatus { return &set.Status }
	written, err := write.Status(ctx, c.writer, in.DaemonSet, status, of)
	if written {
		c.remember(in.DaemonSet.UID, func(m *memory) { m.written = in.Now })
	}
	return err
}

// rememberFailure counts one more Pod that failed on the node, and drops what no longer counts.
func (c *Controller) rememberFailure(in Input, node string) {
	c.remember(in.DaemonSet.UID, func(m *memory) {
		// A decision may be reading the map that there is.
		next := maps.Clone(m.failures)
		maps.DeleteFunc(next, func(_ string, f Failure) bool { return f.known(in.DaemonSet.Generation, in.Now) == 0 })
		if next == nil {
			next = map[string]Failure{}
		}
		next[node] = next[node].Again(in.DaemonSet.Generation, in.Now)
		m.failures = next
	})
}

func (c *Controller) recall(uid types.UID) memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory[uid]
}

func (c *Controller) remember(uid types.UID, change func(*memory)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memory[uid]
	change(&m)
	c.memory[uid] = m
}
