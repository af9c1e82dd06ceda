// Package replicaset keeps every ReplicaSet at its number of Pods.
//
//	decide.go     what one pass does, from what was observed (pure)
//	status.go     the status that goes with it (pure)
//	template.go   what the Pods look like (pure)
//	reconcile.go  observe, apply
//	controller.go what it reads and writes, and what wakes a ReplicaSet up
package replicaset

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/selectors"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "replicaset"

// Registration describes the controller. concurrent is how many ReplicaSets it works on at once.
func Registration(feed *podfeed.Feed, concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"apps"}, Resources: []string{"replicasets/status"}, Verbs: []string{"update"}},
			// An owner reference that blocks its owner's deletion may be set by who may update the owner's finalizers.
			{APIGroups: []string{"apps"}, Resources: []string{"replicasets/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete", "list", "patch",
				"watch"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, concurrent) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, concurrent int) (controller.Runnable, error) {
	clientset, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return nil, fmt.Errorf("building the Pod client: %w", err)
	}
	store, err := gate.StoreOf(s.Cache, &appsv1.ReplicaSet{})
	if err != nil {
		return nil, err
	}
	sets, err := ownerindex.Of[*appsv1.ReplicaSet](store)
	if err != nil {
		return nil, err
	}
	own, pending := client.WithFieldOwner(s.Client, Name), gate.New()
	c := &Controller{
		client: own, live: s.Live, sets: sets, pods: feed.Index, gate: pending, selectors: selectors.New(),
		writer:   &write.Writer{Client: own, Kind: "replicaset", Gate: pending, Store: store},
		ops:      &podops.Operator{Client: clientset, FieldManager: Name, Gate: pending, Feed: feed, Log: s.Log},
		recorder: s.Recorder, now: time.Now, written: map[types.UID]time.Time{},
	}
	built, err := controller.NewReconciler(s, concurrent, c.steps())
	if err != nil {
		return nil, err
	}
	if err := built.Watch(source.Kind(s.Cache, &appsv1.ReplicaSet{}, wake.Self(c.remember, c.forget))); err != nil {
		return nil, fmt.Errorf("watching ReplicaSets: %w", err)
	}
	if err := built.Watch(&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.onPod}); err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	return built, nil
}

// onPod wakes up the ReplicaSets that have, had or could adopt the Pod.
func (c *Controller) onPod(pod *corev1.Pod, change podset.Change) []reconcile.Request {
	var requests []reconcile.Request
	for _, owner := range []*metav1.OwnerReference{change.Before, change.After} {
		if owner != nil && owner.Kind == "ReplicaSet" {
			requests = append(requests, wake.Request(pod.Namespace, owner.Name))
		}
	}
	if change.After == nil && !change.Ended && pod.DeletionTimestamp == nil {
		requests = append(requests, c.adopters(pod)...)
	}
	return requests
}

// adopters returns the ReplicaSets whose selectors match a Pod without a controller.
func (c *Controller) adopters(pod *corev1.Pod) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range c.selectors.Matching(pod.Namespace, pod.Labels) {
		requests = append(requests, wake.Request(pod.Namespace, name))
	}
	return requests
}

func (c *Controller) remember(set *appsv1.ReplicaSet) { c.selectors.Put(set, set.Spec.Selector) }
