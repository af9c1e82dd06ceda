// Package horizontalpodautoscaler scales a workload by its load. The metrics come from metrics.k8s.io,
// custom.metrics.k8s.io and external.metrics.k8s.io; the replicas are read and written through the scale subresource of
// any kind that has one.
//
//	decide.go           how many replicas, and the status (pure); start here
//	decide_propose.go   how many replicas all metrics ask for together (pure)
//	decide_metric.go    how many replicas one metric asks for (pure)
//	decide_pods.go      which Pods count, and for how much (pure)
//	decide_behavior.go  how fast the target may be scaled (pure)
//	decide_history.go   earlier recommendations and changes (pure)
//	decide_explain.go   the explanation of a decision
//	status.go           conditions (pure)
//	target.go           the scaled object
//	metrics.go          reading the metrics
//	reconcile.go        observe, apply
//	controller.go       what it reads and writes, and what wakes an autoscaler up
package horizontalpodautoscaler

import (
	"context"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/scales"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "horizontalpodautoscaler"

// Registration describes the controller. concurrent is how many autoscalers it works on at once.
func Registration(feed *podfeed.Feed, settings Settings, concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"HorizontalPodAutoscaler"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"},
				Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers/status"},
				Verbs: []string{"update"}},
			{APIGroups: []string{"*"}, Resources: []string{"*/scale"}, Verbs: []string{"get", "update"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"pods"}, Verbs: []string{"list"}},
			// The resources of these groups are the names of metrics.
			{APIGroups: []string{"custom.metrics.k8s.io", "external.metrics.k8s.io"}, Resources: []string{"*"},
				Verbs: []string{"get", "list"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, settings, concurrent) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, settings Settings, concurrent int) (controller.Runnable, error) {
	found, sources, err := connect(s.Config, s.Client.RESTMapper())
	if err != nil {
		return nil, err
	}
	own := write.By(s)
	c := &Controller{
		client: own.Client, writer: own.Ungated("horizontalpodautoscaler"), pods: feed.Index,
		selected: podset.NewSelections(feed.Index), scales: found, sources: sources, recorder: s.Recorder,
		settings: settings, now: time.Now, histories: map[types.NamespacedName]known{},
	}
	// Changes of Pods wake no autoscaler: each pass reads the Pods.
	nobody := func(*corev1.Pod, podset.Change) []reconcile.Request { return nil }
	return controller.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(source.Kind(s.Cache, &autoscalingv2.HorizontalPodAutoscaler{}, c.onAutoscaler()),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: nobody}).
		// The selections are not needed after the term.
		Last(c.selected.Close).
		Runnable()
}

// connect creates the clients for the APIs outside the cache.
func connect(config *rest.Config, mapper meta.RESTMapper) (*scales.Client, sources, error) {
	found, err := scales.Connect(config, mapper)
	if err != nil {
		return nil, sources{}, err
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, sources{}, fmt.Errorf("building the discovery client: %w", err)
	}
	resources, err := metricsclient.NewForConfig(config)
	if err != nil {
		return nil, sources{}, fmt.Errorf("building the client for metrics.k8s.io: %w", err)
	}
	external, err := external_metrics.NewForConfig(config)
	if err != nil {
		return nil, sources{}, fmt.Errorf("building the client for external.metrics.k8s.io: %w", err)
	}
	custom := custom_metrics.NewForConfig(config, mapper, custom_metrics.NewAvailableAPIsGetter(finder))
	return found, sources{resources, custom, external}, nil
}

// onAutoscaler wakes up an autoscaler that is new or whose spec has changed. Only this controller writes its status.
func (c *Controller) onAutoscaler() handler.TypedFuncs[*autoscalingv2.HorizontalPodAutoscaler, reconcile.Request] {
	on := wake.Self(func(*autoscalingv2.HorizontalPodAutoscaler) {}, c.forget)
	update := on.UpdateFunc
	on.UpdateFunc = func(ctx context.Context,
		e event.TypedUpdateEvent[*autoscalingv2.HorizontalPodAutoscaler], q wake.Queue) {
		if e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Generation != e.ObjectNew.Generation {
			update(ctx, e, q)
		}
	}
	return on
}
