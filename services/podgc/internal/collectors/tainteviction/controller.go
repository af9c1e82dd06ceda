// Package tainteviction deletes the Pods that do not tolerate a NoExecute taint of their node, at once or when the time
// is over for which they do. Whether an operator has set the taint or the collector nodehealth is all the same to it.
//
//	decide.go      which Pods go, and when (pure)
//	reconcile.go   a pass over a Node: the second look, the condition, the deletion
//	outlook.go     what is ahead of a Pod, in the words of decide_explain.go
//	controller.go  what it reads and writes, and what wakes a Node up
package tainteviction

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
)

// Name is the collector's.
const Name = "tainteviction"

// workers is how many Nodes are worked on at once.
const workers = 10

// Register describes the collector. It reads Pods by nodepods, and answers to outlook.
func Register(outlook *Outlook) controller.Registration {
	return controller.Registration{
		Name: Name, EventSource: "taint-eviction-controller",
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, outlook) },
	}
}

func setup(s *controller.Setup, outlook *Outlook) (controller.Runnable, error) {
	c := &collector{cached: s.Client, live: s.Live, writer: s.Client, record: s.Recorder.Record, log: s.Log,
		now: time.Now, tainted: map[string]memory{}}
	reconciler, err := controller.NewReconciler(s, workers, c.steps())
	if err != nil {
		return nil, err
	}
	if err := reconciler.Watch(source.Kind(s.Cache, &corev1.Node{}, c.nodes())); err != nil {
		return nil, fmt.Errorf("watching Nodes: %w", err)
	}
	if err := reconciler.Watch(source.Kind(s.Cache, &corev1.Pod{}, c.pods())); err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	outlook.lead(c)
	return term{reconciler, outlook}, nil
}

// queue holds the Nodes that wait for a pass.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func add(node string, q queue) {
	q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: node}})
}

// nodes queues the Nodes whose taints evict, or have just ceased to.
func (c *collector) nodes() handler.TypedEventHandler[*corev1.Node, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], q queue) {
			if len(noExecute(e.Object)) > 0 {
				add(e.Object.Name, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], q queue) {
			if !apiequality.Semantic.DeepEqual(noExecute(e.ObjectOld), noExecute(e.ObjectNew)) {
				add(e.ObjectNew.Name, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Node], _ queue) {
			c.forget(e.Object.Name)
		},
	}
}

// pods queues the Node of a Pod that is new there or tolerates something else than before, if the Node evicts anybody.
func (c *collector) pods() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	look := func(ctx context.Context, pod *corev1.Pod, q queue) {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && c.isTainted(ctx, pod.Spec.NodeName) {
			add(pod.Spec.NodeName, q)
		}
	}
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) {
			look(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			if e.ObjectOld.Spec.NodeName != e.ObjectNew.Spec.NodeName ||
				!apiequality.Semantic.DeepEqual(e.ObjectOld.Spec.Tolerations, e.ObjectNew.Spec.Tolerations) {
				look(ctx, e.ObjectNew, q)
			}
		},
	}
}
