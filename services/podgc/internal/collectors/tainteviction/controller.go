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
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/services/podgc/internal/podfeed"
)

// Name is the collector's.
const Name = "tainteviction"

// workers is how many Nodes are worked on at once.
const workers = 10

// Registration describes the collector. It answers to outlook.
func Registration(feed *podfeed.Feed, outlook *Outlook) controller.Registration {
	return controller.Registration{
		Name: Name, EventSource: "taint-eviction-controller",
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, outlook) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, outlook *Outlook) (controller.Runnable, error) {
	c := &collector{cached: s.Client, live: s.Live, writer: s.Client, record: s.Recorder.Record, log: s.Log,
		now: time.Now, pods: feed.On, tainted: map[string]memory{}, evicting: map[string]bool{}}
	return controller.Build(s, workers, c.steps()).
		Watch(source.Kind(s.Cache, &corev1.Node{}, c.nodes()),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Wake: c.onPod}).
		First(func(context.Context) error {
			outlook.lead(c)
			return nil
		}).
		Last(func() { outlook.lead(nil) }).
		Runnable()
}

// queue holds the Nodes that wait for a pass.
type queue = controller.Queue[reconcile.Request]

func add(node string, q queue) {
	q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: node}})
}

// nodes queues the Nodes whose taints evict, or have just ceased to.
func (c *collector) nodes() handler.TypedEventHandler[*corev1.Node, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], q queue) {
			if c.note(e.Object) {
				add(e.Object.Name, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], q queue) {
			c.note(e.ObjectNew)
			if !apiequality.Semantic.DeepEqual(noExecute(e.ObjectOld), noExecute(e.ObjectNew)) {
				add(e.ObjectNew.Name, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Node], _ queue) {
			c.leave(e.Object.Name)
		},
	}
}

// onPod queues the Node of a Pod that is new there or tolerates something else than before, if the Node evicts
// anybody.
func (c *collector) onPod(last, now *corev1.Pod, q queue) {
	if now == nil || now.Spec.NodeName == "" || now.DeletionTimestamp != nil {
		return
	}
	if last != nil && last.Spec.NodeName == now.Spec.NodeName && tolerateSame(last, now) {
		return
	}
	if c.evicts(now.Spec.NodeName) {
		add(now.Spec.NodeName, q)
	}
}

// tolerateSame reports whether two Pods tolerate the same. The cache lets those that do share one list.
func tolerateSame(a, b *corev1.Pod) bool {
	x, y := a.Spec.Tolerations, b.Spec.Tolerations
	if len(x) != len(y) {
		return false
	}
	return len(x) == 0 || &x[0] == &y[0] || apiequality.Semantic.DeepEqual(x, y)
}
