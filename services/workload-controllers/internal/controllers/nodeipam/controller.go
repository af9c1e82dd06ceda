// Package nodeipam assigns each Node a share of the cluster's Pod ranges.
//
//	decide.go            which share a Node gets (pure)
//	decide_pool.go       the shares of one range, and the next free one (pure)
//	decide_explain.go    the explanation of a decision
//	events.go            the events that users see (pure)
//	settings.go          the flags
//	ledger.go            the ranges in use
//	reconcile.go         observe and apply
//	controller.go        what it reads and writes, and what wakes a Node up
package nodeipam

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "nodeipam"

// Registration describes the controller.
func Registration(settings Settings) controller.Registration {
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"Node"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch", "watch"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, settings) },
	}
}

func setup(s *controller.Setup, settings Settings) (controller.Runnable, error) {
	pools, err := settings.pools()
	if err != nil {
		return nil, err
	}
	own := write.By(s)
	c := &Controller{reader: own.Client, live: s.Live, writer: own.Ungated("node"),
		recorder: s.Recorder, log: s.Log, ledger: newLedger(pools)}
	const concurrent = 1 // see Controller
	return controller.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(source.Kind(s.Cache, &corev1.Node{}, c.onNode())).
		First(func(ctx context.Context) error {
			_, err := c.recount(ctx)
			return err
		}).
		Runnable()
}

// onNode wakes up a Node without ranges when it changes, and a Node that waits for ranges when another Node is
// deleted.
func (c *Controller) onNode() handler.TypedFuncs[*corev1.Node, reconcile.Request] {
	set := func(node *corev1.Node, q wake.Queue) {
		c.ledger.observe(node)
		if len(rangesOf(node)) == 0 {
			q.Add(wake.Request("", node.Name))
		}
	}
	gone := func(node *corev1.Node, q wake.Queue) {
		if waiting := c.ledger.forget(node); waiting != "" {
			q.Add(wake.Request("", waiting))
		}
	}
	return controller.Follow(set, gone)
}
