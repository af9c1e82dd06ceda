// Package nodehealth marks unreachable nodes, marks their Pods as not ready, and maintains the taints that
// follow from a Node's conditions: NoSchedule at once, NoExecute as fast as the state of its zone allows. The collector
// tainteviction evicts the Pods that do not tolerate the latter.
//
// A node is heard when its Lease is renewed or it reports its status. The Leases are listed, not watched: of 5,000
// nodes a list every 10 seconds is one request and one decoding of about a megabyte, while a watch would be 500 events
// a second, nearly all of which say nothing new. The price is that a node is lost up to one such period later.
//
//	decide.go         what is to be written about a Node (pure)
//	decide_taints.go  which taints its conditions ask for (pure)
//	decide_zones.go   how fast the nodes of a zone are given up (pure)
//	fleet.go          what is known of all nodes together, on a time of its own
//	outlook.go        what is ahead of a node, in the words of decide_explain.go
//	settings.go       how patient the collector is
//	reconcile.go      a pass over a Node, and the look at the Leases
//	controller.go     what it reads and writes, and what wakes a Node up
package nodehealth

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/services/podgc/internal/podfeed"
)

// Name is the collector's.
const Name = "nodehealth"

// workers is how many Nodes are looked after at once.
const workers = 10

// Registration describes the collector.
func Registration(settings Settings, feed *podfeed.Feed) controller.Registration {
	return controller.Registration{
		Name: Name, Explains: []string{"Node"}, EventSource: "node-controller",
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list", "watch", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"nodes/status", "pods/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"list"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, settings, feed) },
	}
}

// queue holds the Nodes that wait for a pass.
type queue = controller.Queue[reconcile.Request]

// monitor is the collector at work.
type monitor struct {
	*collector
	setup *controller.Setup

	mu    sync.Mutex // guards queue
	queue queue
}

func setup(s *controller.Setup, settings Settings, feed *podfeed.Feed) (controller.Runnable, error) {
	m := &monitor{setup: s, collector: &collector{cached: s.Client, live: s.Live, writer: s.Client, pods: feed.On,
		record: s.Recorder.Record, log: s.Log, now: time.Now, fleet: newFleet(settings)}}
	steps := m.steps()
	pass := func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		defer m.wake()
		return steps.Reconcile(ctx, request)
	}
	return controller.Build(s, workers, reconcile.TypedReconciler[reconcile.Request](reconcile.Func(pass))).
		Explain(m.explain).
		Queue(m.fill).
		Watch(source.Kind(s.Cache, &corev1.Node{}, m.handler()), &podfeed.Source{Feed: feed, Cache: s.Cache}).
		First(m.takeAll).
		Beside(m.keepLooking).
		Runnable()
}

// fill remembers the queue.
func (m *monitor) fill(q queue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = q
}

// takeAll takes in the Nodes. Nothing is decided about one before all of them are known: the first would be taken for
// the whole mesh.
func (m *monitor) takeAll(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := m.cached.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	for i := range nodes.Items {
		m.fleet.take(&nodes.Items[i], m.now())
	}
	return nil
}

// keepLooking looks at the Leases once per period.
func (m *monitor) keepLooking(ctx context.Context) error {
	period := m.fleet.settings.period()
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		look, cancel := context.WithTimeout(ctx, period)
		if err := m.look(look); err != nil && ctx.Err() == nil {
			m.setup.Failed(err)
		}
		cancel()
		m.wake()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// wake queues the nodes that are due. Before the queue is there, every Node is still to be queued.
func (m *monitor) wake() {
	m.mu.Lock()
	q := m.queue
	m.mu.Unlock()
	if q == nil {
		return
	}
	for _, name := range m.fleet.due() {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
}

// handler queues every Node that changes, and drops those that are gone.
func (m *monitor) handler() handler.TypedEventHandler[*corev1.Node, reconcile.Request] {
	add := func(node *corev1.Node, q queue) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(node)})
	}
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], q queue) {
			add(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Node], _ queue) {
			m.fleet.forget(e.Object.Name)
			m.wake()
		},
	}
}
