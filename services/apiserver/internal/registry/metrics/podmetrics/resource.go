// Package podmetrics is metrics.k8s.io's "pods": what the containers of Pods use, as the agents of their nodes say on
// request.
package podmetrics

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
	"keelson.dev/services/apiserver/internal/usage"
)

// Pods reads what Pods there are.
type Pods interface {
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	Pods(ctx context.Context, namespace string, selector labels.Selector) ([]corev1.Pod, error)
}

// Entry serves what the Pods use.
func Entry(pods Pods, source *usage.Source) rest.Entry {
	r := reader{pods, source}
	return rest.Computed[*metricsv1.PodMetrics]{
		Group: metricsv1.GroupName, Name: "pods", Singular: "podmetrics",
		New:     func() *metricsv1.PodMetrics { return &metricsv1.PodMetrics{} },
		NewList: func() runtime.Object { return &metricsv1.PodMetricsList{} },
		Get:     r.get, List: r.list, Columns: columns,
	}
}

type reader struct {
	pods   Pods
	source *usage.Source
}

func (r reader) get(ctx context.Context, namespace, name string) (*metricsv1.PodMetrics, error) {
	pod, err := r.pods.Pod(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		// A new error: the store names the resource of the request in ctx, which is this one.
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	if err != nil {
		return nil, err
	}
	if found := r.measure(ctx, []corev1.Pod{*pod}); len(found) > 0 {
		return &found[0], nil
	}
	return nil, apierrors.NewNotFound(metricsv1.Resource("podmetrics"), namespace+"/"+name)
}

func (r reader) list(ctx context.Context, namespace string, selected rest.Selection) (runtime.Object, error) {
	all, err := r.pods.Pods(ctx, namespace, selected.Labels)
	if err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	for i := range all {
		if selected.Matches(&all[i]) {
			pods = append(pods, all[i])
		}
	}
	return &metricsv1.PodMetricsList{Items: r.measure(ctx, pods)}, nil
}

// measure asks the nodes that the Pods are on, and no others. A Pod of which its own node does not tell is left out.
func (r reader) measure(ctx context.Context, pods []corev1.Pod) []metricsv1.PodMetrics {
	readings := r.source.Of(ctx, nodesOf(pods))
	now, all := time.Now(), []metricsv1.PodMetrics{}
	for i := range pods {
		if metrics, ok := metricsOf(&pods[i], readings[pods[i].Spec.NodeName], now); ok {
			all = append(all, metrics)
		}
	}
	return all
}

var columns = resource.NewColumnsOf(sumOf,
	resource.NameColumnOf(func(s sum) any { return s.name }),
	resource.Column("CPU", "string", "CPU that the containers use together, in cores.",
		func(s sum) any { return s.usage.Cpu().String() }),
	resource.Column("Memory", "string", "Working set of the containers together.",
		func(s sum) any { return s.usage.Memory().String() }),
	resource.Column("Window", "string", "The time up to the reading over which the CPU is averaged.",
		func(s sum) any { return s.window.Duration.String() }),
)

// sum is what a row shows of the Pod's containers together.
type sum struct {
	name   string
	usage  corev1.ResourceList
	window metav1.Duration
}
