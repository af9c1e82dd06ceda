package kubeletmetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// operations are the metrics' label values for CRI methods. Other calls are not counted.
var operations = map[string]string{
	cri.RuntimeService_Version_FullMethodName:                  "version",
	cri.RuntimeService_Status_FullMethodName:                   "status",
	cri.RuntimeService_RuntimeConfig_FullMethodName:            "runtime_config",
	cri.RuntimeService_UpdateRuntimeConfig_FullMethodName:      "update_runtime_config",
	cri.RuntimeService_RunPodSandbox_FullMethodName:            "run_podsandbox",
	cri.RuntimeService_StopPodSandbox_FullMethodName:           "stop_podsandbox",
	cri.RuntimeService_RemovePodSandbox_FullMethodName:         "remove_podsandbox",
	cri.RuntimeService_PodSandboxStatus_FullMethodName:         "podsandbox_status",
	cri.RuntimeService_ListPodSandbox_FullMethodName:           "list_podsandbox",
	cri.RuntimeService_CreateContainer_FullMethodName:          "create_container",
	cri.RuntimeService_StartContainer_FullMethodName:           "start_container",
	cri.RuntimeService_StopContainer_FullMethodName:            "stop_container",
	cri.RuntimeService_RemoveContainer_FullMethodName:          "remove_container",
	cri.RuntimeService_ContainerStatus_FullMethodName:          "container_status",
	cri.RuntimeService_ListContainers_FullMethodName:           "list_containers",
	cri.RuntimeService_UpdateContainerResources_FullMethodName: "update_container",
	cri.RuntimeService_ReopenContainerLog_FullMethodName:       "reopen_container_log",
	cri.RuntimeService_ListContainerStats_FullMethodName:       "list_container_stats",
	cri.RuntimeService_ExecSync_FullMethodName:                 "exec_sync",
	cri.RuntimeService_Exec_FullMethodName:                     "exec",
	cri.RuntimeService_Attach_FullMethodName:                   "attach",
	cri.RuntimeService_PortForward_FullMethodName:              "port_forward",
	cri.ImageService_ImageStatus_FullMethodName:                "image_status",
	cri.ImageService_ListImages_FullMethodName:                 "list_images",
	cri.ImageService_PullImage_FullMethodName:                  "pull_image",
	cri.ImageService_RemoveImage_FullMethodName:                "remove_image",
	cri.ImageService_ImageFsInfo_FullMethodName:                "image_fs_info",
}

// Calls counts the calls to the container runtime. Create it with NewCalls.
type Calls struct {
	all, errors, sandboxErrors *prometheus.CounterVec
	durations, sandboxes       *prometheus.HistogramVec
}

// NewCalls returns counters at 0.
func NewCalls() *Calls {
	return &Calls{
		all: counters("kubelet_runtime_operations_total",
			"Cumulative number of runtime operations by operation type.", "operation_type"),
		errors: counters("kubelet_runtime_operations_errors_total",
			"Cumulative number of runtime operation errors by operation type.", "operation_type"),
		durations: histograms("kubelet_runtime_operations_duration_seconds",
			"Duration in seconds of runtime operations. Broken down by operation type.",
			prometheus.ExponentialBuckets(.005, 2.5, 14), "operation_type"),
		sandboxes: histograms("kubelet_run_podsandbox_duration_seconds",
			"Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.",
			prometheus.DefBuckets, "runtime_handler"),
		sandboxErrors: counters("kubelet_run_podsandbox_errors_total",
			"Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.", "runtime_handler"),
	}
}

// Metrics returns all counters.
func (c *Calls) Metrics() []prometheus.Collector {
	return []prometheus.Collector{c.all, c.errors, c.durations, c.sandboxes, c.sandboxErrors}
}

// Intercept is a grpc.UnaryClientInterceptor that counts calls.
func (c *Calls) Intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	began := time.Now()
	err := invoke(ctx, method, request, reply, conn, options...)
	if operation, known := operations[method]; known {
		c.count(operation, request, time.Since(began), err)
	}
	return err
}

func (c *Calls) count(operation string, request any, took time.Duration, err error) {
	c.all.WithLabelValues(operation).Inc()
	c.durations.WithLabelValues(operation).Observe(took.Seconds())
	sandbox, isSandbox := request.(*cri.RunPodSandboxRequest)
	if isSandbox {
		c.sandboxes.WithLabelValues(sandbox.RuntimeHandler).Observe(took.Seconds())
	}
	if err == nil {
		return
	}
	c.errors.WithLabelValues(operation).Inc()
	if isSandbox {
		c.sandboxErrors.WithLabelValues(sandbox.RuntimeHandler).Inc()
	}
}
