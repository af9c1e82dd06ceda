package pods

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/failpoint"
)

var deletions = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "podgc_pod_deletions_total", Help: "Pods that were collected, by reason.",
}, []string{"reason"})

// Metrics counts the Pods that were collected.
func Metrics() prometheus.Collector { return deletions }

// collector carries sweeps out. It remembers which nodes it missed; losing that memory only restarts a quarantine.
type collector struct {
	client    client.Client
	live      client.Reader
	log       *zap.Logger
	threshold int
	pods      *index
	// elsewhere are the Pods on any other node than these.
	elsewhere func(nodes map[string]*corev1.Node) []*corev1.Pod

	mu          sync.Mutex // guards missedSince
	missedSince map[string]time.Time
}

// sweep looks at the Pods that may have to go and takes away what the plan says. One Pod's error never keeps the
// others.
func (c *collector) sweep(ctx context.Context, now time.Time) error {
	in, err := c.observe(ctx, now)
	if err != nil {
		return err
	}
	plan := Decide(in)
	c.mu.Lock()
	c.missedSince = plan.MissedSince
	c.mu.Unlock()
	absent, errs := c.confirm(ctx, plan.nodesToConfirm())
	for _, collection := range plan.Collect {
		if collection.Reason == Orphaned && !absent[collection.Pod.Spec.NodeName] {
			continue
		}
		if err := c.collect(ctx, collection); err != nil {
			errs = append(errs, fmt.Errorf("collecting Pod %s/%s: %w", collection.Pod.Namespace, collection.Pod.Name,
				err))
		}
	}
	return errors.Join(errs...)
}

func (c *collector) observe(ctx context.Context, now time.Time) (Input, error) {
	var nodes corev1.NodeList
	if err := c.client.List(ctx, &nodes); err != nil {
		return Input{}, fmt.Errorf("listing Nodes: %w", err)
	}
	in := Input{Nodes: make(map[string]*corev1.Node, len(nodes.Items)), Threshold: c.threshold, Now: now}
	c.mu.Lock()
	in.MissedSince = c.missedSince
	c.mu.Unlock()
	for i := range nodes.Items {
		in.Nodes[nodes.Items[i].Name] = &nodes.Items[i]
	}
	in.Pods = c.pods.relevant(c.elsewhere(in.Nodes), c.threshold)
	return in, nil
}

// confirm asks the server for each node. Only a plain "not found" proves that it is gone (SAF-164).
func (c *collector) confirm(ctx context.Context, names []string) (absent map[string]bool, errs []error) {
	absent = map[string]bool{}
	for _, name := range names {
		err := c.live.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{})
		switch {
		case apierrors.IsNotFound(err):
			absent[name] = true
		case err != nil:
			errs = append(errs, fmt.Errorf("confirming that node %s is gone: %w", name, err))
		}
	}
	return absent, errs
}

// collect writes the status first, so that a watcher learns why the Pod went, and deletes only when that was written,
// and only the version of the Pod that was decided on.
func (c *collector) collect(ctx context.Context, collection Collection) error {
	pod := collection.Pod
	if collection.MarkFailed || collection.Disruption != nil {
		var err error
		if pod, err = c.patchStatus(ctx, collection); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return failpoint.Around("podgc/pod.delete", func() error {
		c.log.Info("collecting Pod", zap.String("namespace", pod.Namespace), zap.String("name", pod.Name),
			zap.String("uid", string(pod.UID)), zap.String("node", pod.Spec.NodeName),
			zap.String("reason", string(collection.Reason)))
		err := c.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID,
			ResourceVersion: &pod.ResourceVersion})
		if err != nil {
			return client.IgnoreNotFound(fmt.Errorf("deleting: %w", err))
		}
		deletions.WithLabelValues(string(collection.Reason)).Inc()
		return nil
	})
}

// patchStatus returns the Pod as the server has it now.
func (c *collector) patchStatus(ctx context.Context, collection Collection) (*corev1.Pod, error) {
	if err := failpoint.Inject("podgc/pod.status.before"); err != nil {
		return nil, err
	}
	changed := collection.Pod.DeepCopy()
	markCollected(&changed.Status, collection, time.Now())
	patch := client.MergeFromWithOptions(collection.Pod, client.MergeFromWithOptimisticLock{})
	if err := c.client.Status().Patch(ctx, changed, patch); err != nil {
		return nil, fmt.Errorf("marking as collected: %w", err)
	}
	return changed, nil
}

// markCollected writes into the status why the Pod goes.
func markCollected(status *corev1.PodStatus, collection Collection, now time.Time) {
	if collection.MarkFailed {
		status.Phase = corev1.PodFailed
	}
	if collection.Disruption != nil {
		status.Conditions, _ = conditions.Pod.Set(status.Conditions, *collection.Disruption, now)
	}
}
