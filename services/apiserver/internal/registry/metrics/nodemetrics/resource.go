// Package nodemetrics is metrics.k8s.io's "nodes": what nodes use, as their agents say on request.
package nodemetrics

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

// Nodes reads what nodes there are.
type Nodes interface {
	Node(ctx context.Context, name string) (*corev1.Node, error)
	Nodes(ctx context.Context, selector labels.Selector) ([]corev1.Node, error)
}

// Entry serves what the nodes use.
func Entry(nodes Nodes, source *usage.Source) rest.Entry {
	r := reader{nodes, source}
	return rest.Computed[*metricsv1.NodeMetrics]{
		Group: metricsv1.GroupName, Name: "nodes", Singular: "nodemetrics", ClusterScoped: true,
		New:     func() *metricsv1.NodeMetrics { return &metricsv1.NodeMetrics{} },
		NewList: func() runtime.Object { return &metricsv1.NodeMetricsList{} },
		Get:     r.get, List: r.list, Columns: columns,
	}
}

type reader struct {
	nodes  Nodes
	source *usage.Source
}

func (r reader) get(ctx context.Context, _, name string) (*metricsv1.NodeMetrics, error) {
	node, err := r.nodes.Node(ctx, name)
	if apierrors.IsNotFound(err) {
		// A new error: the store names the resource of the request in ctx, which is this one.
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}
	if err != nil {
		return nil, err
	}
	if found := r.measure(ctx, []*corev1.Node{node}); len(found) > 0 {
		return &found[0], nil
	}
	return nil, apierrors.NewNotFound(metricsv1.Resource("nodemetrics"), name)
}

func (r reader) list(ctx context.Context, _ string, selected rest.Selection) (runtime.Object, error) {
	all, err := r.nodes.Nodes(ctx, selected.Labels)
	if err != nil {
		return nil, err
	}
	var nodes []*corev1.Node
	for i := range all {
		if selected.Matches(&all[i]) {
			nodes = append(nodes, &all[i])
		}
	}
	return &metricsv1.NodeMetricsList{Items: r.measure(ctx, nodes)}, nil
}

// measure leaves out the nodes whose agents do not tell.
func (r reader) measure(ctx context.Context, nodes []*corev1.Node) []metricsv1.NodeMetrics {
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	readings := r.source.Of(ctx, names)
	now, all := time.Now(), []metricsv1.NodeMetrics{}
	for _, node := range nodes {
		if used, ok := readings[node.Name].Node(); ok {
			all = append(all, metricsv1.NodeMetrics{
				ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels,
					CreationTimestamp: metav1.NewTime(now)},
				Timestamp: metav1.NewTime(used.At), Window: metav1.Duration{Duration: used.Window},
				Usage: used.Resources(),
			})
		}
	}
	return all
}

var columns = resource.NewColumns(
	resource.NameColumn[*metricsv1.NodeMetrics](),
	resource.Column("CPU", "string", "CPU that is used, in cores.",
		func(m *metricsv1.NodeMetrics) any { return m.Usage.Cpu().String() }),
	resource.Column("Memory", "string", "Working set.",
		func(m *metricsv1.NodeMetrics) any { return m.Usage.Memory().String() }),
	resource.Column("Window", "string", "The time up to the reading over which the CPU is averaged.",
		func(m *metricsv1.NodeMetrics) any { return m.Window.Duration.String() }),
)
