package nodehealth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/pass"
)

// collector looks after one Node at a time.
type collector struct {
	cached, live client.Reader
	writer       client.Client
	record       func(about runtime.Object, e events.Event)
	log          *zap.Logger
	now          func() time.Time
	fleet        *fleet
	// pods are those on a node.
	pods func(node string) []*corev1.Pod
}

// steps are what a pass over a Node consists of. Every write names the version that was decided on, so that a node
// which reports at that moment is never contradicted.
func (c *collector) steps() *pass.Steps[*corev1.Node, Input, Plan] {
	return &pass.Steps[*corev1.Node, Input, Plan]{
		Reader: c.cached, New: func() *corev1.Node { return &corev1.Node{} },
		Observe: c.observe, Decide: Decide, Apply: c.apply,
		After: func(in Input, _ Plan) time.Duration { return in.Wait },
	}
}

func (c *collector) observe(_ context.Context, node *corev1.Node) (Input, bool, error) {
	in := Input{Now: c.now(), Node: node}
	c.fleet.take(node, in.Now)
	in.Standing = c.fleet.stand(node, in.Now)
	if isLost(node, in.Silent) {
		in.Pods = c.pods(node.Name)
	}
	return in, true, nil
}

func (c *collector) apply(ctx context.Context, in Input, plan Plan) error {
	if plan.Conditions != nil {
		return c.report(ctx, in.Node, plan)
	}
	var errs []error
	for _, pod := range plan.NotReady {
		if err := c.markNotReady(ctx, pod, in.Now); err != nil {
			errs = append(errs, err)
		}
	}
	if plan.Retaint {
		errs = append(errs, c.retaint(ctx, in.Node, plan.Taints))
	}
	return errors.Join(errs...)
}

// report writes a Node's conditions in its place.
func (c *collector) report(ctx context.Context, node *corev1.Node, plan Plan) error {
	return failpoint.Around("podgc/node.status", func() error {
		changed := node.DeepCopy()
		changed.Status.Conditions = plan.Conditions
		if err := c.writer.Status().Patch(ctx, changed, ifUnchanged(node)); err != nil {
			return unlessGone(err, "reporting that node %s is silent", node.Name)
		}
		c.log.Info("node is silent", zap.String("node", node.Name))
		if plan.Event != nil {
			c.record(node, *plan.Event)
		}
		return nil
	})
}

func (c *collector) retaint(ctx context.Context, node *corev1.Node, taints []corev1.Taint) error {
	return failpoint.Around("podgc/node.taint", func() error {
		changed := node.DeepCopy()
		changed.Spec.Taints = taints
		if err := c.writer.Patch(ctx, changed, ifUnchanged(node)); err != nil {
			return unlessGone(err, "tainting node %s", node.Name)
		}
		c.log.Info("tainted node", zap.String("node", node.Name), zap.Any("taints", keys(taints)))
		return nil
	})
}

// markNotReady says of a Pod on a lost node that it does not serve any more.
func (c *collector) markNotReady(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	return failpoint.Around("podgc/pod.notready", func() error {
		changed := pod.DeepCopy()
		ready := *conditions.Pod.Find(pod.Status.Conditions, corev1.PodReady)
		ready.Status = corev1.ConditionFalse
		changed.Status.Conditions, _ = conditions.Pod.Set(pod.Status.Conditions, ready, now)
		if err := c.writer.Status().Patch(ctx, changed, ifUnchanged(pod)); err != nil {
			return unlessGone(err, "marking Pod %s/%s as not ready", pod.Namespace, pod.Name)
		}
		c.record(pod, events.Warning("NodeNotReady", "Node is not ready"))
		return nil
	})
}

// look reads all Leases of nodes.
func (c *collector) look(ctx context.Context) error {
	var leases coordinationv1.LeaseList
	if err := c.live.List(ctx, &leases, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		return fmt.Errorf("listing the Leases of the nodes: %w", err)
	}
	renewed := make(map[string]int64, len(leases.Items))
	for i := range leases.Items {
		if at := leases.Items[i].Spec.RenewTime; at != nil {
			renewed[leases.Items[i].Name] = at.UnixMicro()
		}
	}
	var nodes corev1.NodeList
	if err := c.cached.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	names := make(map[string]bool, len(nodes.Items))
	for i := range nodes.Items {
		names[nodes.Items[i].Name] = true
	}
	c.fleet.look(names, renewed, c.now())
	return nil
}

// unlessGone is the error of a write, or nil where what was to be written has gone.
func unlessGone(err error, format string, args ...any) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// ifUnchanged is the patch from the object, in its version, to what it is given.
func ifUnchanged(object client.Object) client.Patch {
	return client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
}

func keys(taints []corev1.Taint) []string {
	var out []string
	for _, t := range taints {
		out = append(out, t.ToString())
	}
	return out
}
