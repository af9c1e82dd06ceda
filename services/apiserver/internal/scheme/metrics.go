package scheme

import (
	"k8s.io/apimachinery/pkg/runtime"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// addMetricsConversions makes the kinds of metrics.k8s.io/v1beta1 second shapes of those of v1, which have the same
// fields.
func addMetricsConversions(scheme *runtime.Scheme) error {
	if err := convertible(scheme, nodeMetricsToBeta, nodeMetricsFromBeta); err != nil {
		return err
	}
	if err := convertible(scheme, podMetricsToBeta, podMetricsFromBeta); err != nil {
		return err
	}
	err := convertible(scheme,
		func(in *metricsv1.NodeMetricsList, out *metricsv1beta1.NodeMetricsList) {
			out.ListMeta, out.Items = in.ListMeta, each(in.Items, nodeMetricsToBeta)
		},
		func(in *metricsv1beta1.NodeMetricsList, out *metricsv1.NodeMetricsList) {
			out.ListMeta, out.Items = in.ListMeta, each(in.Items, nodeMetricsFromBeta)
		})
	if err != nil {
		return err
	}
	return convertible(scheme,
		func(in *metricsv1.PodMetricsList, out *metricsv1beta1.PodMetricsList) {
			out.ListMeta, out.Items = in.ListMeta, each(in.Items, podMetricsToBeta)
		},
		func(in *metricsv1beta1.PodMetricsList, out *metricsv1.PodMetricsList) {
			out.ListMeta, out.Items = in.ListMeta, each(in.Items, podMetricsFromBeta)
		})
}

func nodeMetricsToBeta(in *metricsv1.NodeMetrics, out *metricsv1beta1.NodeMetrics) {
	*out = metricsv1beta1.NodeMetrics{ObjectMeta: in.ObjectMeta, Timestamp: in.Timestamp, Window: in.Window,
		Usage: in.Usage}
}

func nodeMetricsFromBeta(in *metricsv1beta1.NodeMetrics, out *metricsv1.NodeMetrics) {
	*out = metricsv1.NodeMetrics{ObjectMeta: in.ObjectMeta, Timestamp: in.Timestamp, Window: in.Window,
		Usage: in.Usage}
}

func podMetricsToBeta(in *metricsv1.PodMetrics, out *metricsv1beta1.PodMetrics) {
	*out = metricsv1beta1.PodMetrics{ObjectMeta: in.ObjectMeta, Timestamp: in.Timestamp, Window: in.Window,
		Containers: each(in.Containers, func(c *metricsv1.ContainerMetrics, out *metricsv1beta1.ContainerMetrics) {
			*out = metricsv1beta1.ContainerMetrics(*c)
		})}
}

func podMetricsFromBeta(in *metricsv1beta1.PodMetrics, out *metricsv1.PodMetrics) {
	*out = metricsv1.PodMetrics{ObjectMeta: in.ObjectMeta, Timestamp: in.Timestamp, Window: in.Window,
		Containers: each(in.Containers, func(c *metricsv1beta1.ContainerMetrics, out *metricsv1.ContainerMetrics) {
			*out = metricsv1.ContainerMetrics(*c)
		})}
}

// each converts all items; no list stays none.
func each[In, Out any](in []In, convert func(*In, *Out)) []Out {
	if in == nil {
		return nil
	}
	out := make([]Out, len(in))
	for i := range in {
		convert(&in[i], &out[i])
	}
	return out
}
