package kubeletmetrics

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podworker"
	"keelson.dev/services/nodeagent/internal/pressure"
	"keelson.dev/services/nodeagent/internal/runtime/cri"
	"keelson.dev/services/nodeagent/internal/volumestats"
)

// What workers do is counted under the kubelet's names, with its labels and buckets.
func TestWorkers(t *testing.T) {
	w := NewWorkers()
	w.Taken(time.Second)
	w.Running(2 * time.Second)
	w.Synced(podworker.SyncCreate, 3*time.Second)
	w.Synced(podworker.SyncKill, time.Second)
	w.SandboxStarted(nil)
	w.SandboxStarted(errors.New("no network"))
	w.ContainerStarted(lifecycle.Main, "")
	w.ContainerStarted(lifecycle.Sidecar, "ErrImagePull")
	w.ContainerStarted(lifecycle.Init, "")
	w.ContainerStarted(lifecycle.Ephemeral, "")
	for kind, c := range map[lifecycle.Kind]observed.Container{
		lifecycle.Main: {ExitCode: 139, Reason: "Error"}, lifecycle.Init: {Reason: "Completed"},
		lifecycle.Sidecar: {Reason: "Completed"}, lifecycle.Ephemeral: {ExitCode: 1, Reason: "Error"},
	} {
		w.Ended(kind, &c)
	}
	expect(t, shown(t, w.Metrics()...),
		"kubelet_pod_start_duration_seconds histogram 1 2 of 25 to 3600",
		"kubelet_pod_worker_duration_seconds operation_type=create histogram 1 3 of 11 to 10",
		"kubelet_pod_worker_duration_seconds operation_type=kill histogram 1 1 of 11 to 10",
		"kubelet_pod_worker_start_duration_seconds histogram 1 1 of 11 to 10",
		"kubelet_started_containers_errors_total code=ErrImagePull container_type=init_container counter 1",
		"kubelet_started_containers_total container_type=container counter 1",
		"kubelet_started_containers_total container_type=ephemeral_container counter 1",
		"kubelet_started_containers_total container_type=init_container counter 2",
		"kubelet_started_pods_errors_total counter 1",
		"kubelet_started_pods_total counter 2",
		"kubelet_terminated_containers_total container_type=container exit_code=139 reason=Error counter 1",
		"kubelet_terminated_containers_total container_type=ephemeral_container exit_code=1 reason=Error counter 1",
		"kubelet_terminated_containers_total container_type=init_container exit_code=0 reason=Completed counter 2",
		"nodeagent_pod_start_duration_seconds histogram 1 2 of 15 to 300",
		"terminated_containers_total container_type=container exit_code=139 reason=Error counter 1",
		"terminated_containers_total container_type=ephemeral_container exit_code=1 reason=Error counter 1",
		"terminated_containers_total container_type=init_container exit_code=0 reason=Completed counter 2")
}

// failing is a container runtime without a network.
type failing struct {
	criapi.UnimplementedRuntimeServiceServer
	criapi.UnimplementedImageServiceServer
}

func (failing) Version(context.Context, *criapi.VersionRequest) (*criapi.VersionResponse, error) {
	return &criapi.VersionResponse{RuntimeName: "failing"}, nil
}

func (failing) RunPodSandbox(context.Context, *criapi.RunPodSandboxRequest) (*criapi.RunPodSandboxResponse, error) {
	return nil, status.Error(codes.Unknown, "no network")
}

// Each call to a container runtime is counted by its operation, and failed ones also as errors.
func TestCalls(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cri")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	criapi.RegisterRuntimeServiceServer(server, failing{})
	criapi.RegisterImageServiceServer(server, failing{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	calls := NewCalls()
	runtime, err := cri.Connect("unix://"+socket, zap.NewNop(), calls.Intercept)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := runtime.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := runtime.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := runtime.RunSandbox(t.Context(), &criapi.PodSandboxConfig{}, "gvisor"); err == nil {
			t.Fatal("a sandbox runs")
		}
	}
	if _, err := runtime.ListImages(t.Context()); err == nil {
		t.Fatal("there are images")
	}
	// Calls to containerd's own API are not CRI.
	if err := runtime.RemoveContainer(t.Context(), "c"); err == nil {
		t.Fatal("a container was removed")
	}
	expect(t, shown(t, calls.all, calls.errors, calls.sandboxErrors),
		"kubelet_run_podsandbox_errors_total runtime_handler=gvisor counter 2",
		"kubelet_runtime_operations_errors_total operation_type=container_status counter 1",
		"kubelet_runtime_operations_errors_total operation_type=list_images counter 1",
		"kubelet_runtime_operations_errors_total operation_type=run_podsandbox counter 2",
		"kubelet_runtime_operations_total operation_type=container_status counter 1",
		"kubelet_runtime_operations_total operation_type=list_images counter 1",
		"kubelet_runtime_operations_total operation_type=run_podsandbox counter 2",
		"kubelet_runtime_operations_total operation_type=version counter 1")
	synctest.Test(t, func(t *testing.T) {
		calls := NewCalls()
		slow := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			time.Sleep(3 * time.Second)
			return nil
		}
		for method, request := range map[string]any{
			criapi.RuntimeService_RunPodSandbox_FullMethodName: &criapi.RunPodSandboxRequest{},
			criapi.ImageService_PullImage_FullMethodName:       &criapi.PullImageRequest{},
			"/containerd.services.tasks.v1.Tasks/Kill":         nil,
		} {
			if err := calls.Intercept(t.Context(), method, request, nil, nil, slow); err != nil {
				t.Fatal(err)
			}
		}
		const operation, took = "kubelet_runtime_operations_duration_seconds operation_type=",
			" histogram 1 3 of 14 to 745.0580596923828"
		expect(t, shown(t, calls.durations, calls.sandboxes),
			"kubelet_run_podsandbox_duration_seconds runtime_handler= histogram 1 3 of 11 to 10",
			operation+"pull_image"+took, operation+"run_podsandbox"+took)
	})
}

// named returns a Pod with the UID.
func named(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Namespace: "ns", Name: string(uid)}}
}

// Pods and containers are counted as their workers see them.
func TestNode(t *testing.T) {
	debugged := named("debugged")
	debugged.Spec.EphemeralContainers = make([]corev1.EphemeralContainer, 2)
	of := func(created, running, exited int) map[observed.ContainerState]int {
		return map[observed.ContainerState]int{observed.Created: created, observed.Running: running,
			observed.Exited: exited}
	}
	expect(t, shown(t, Node{Name: "n1", Static: func(uid types.UID) bool { return uid == "static" },
		Active: func() map[*corev1.Pod]bool { return map[*corev1.Pod]bool{named("static"): false, debugged: true} },
		Pods: func() []podworker.View {
			return []podworker.View{
				{Pod: named("static"), Sandbox: true, States: of(0, 2, 1)},
				{Pod: debugged, Sandbox: true, States: of(1, 1, 0)},
				{Pod: named("waiting")},
				{Pod: named("removed"), Removed: true, Sandbox: true, States: of(0, 1, 0)},
			}
		}}),
		"kubelet_active_pods static=false gauge 1",
		"kubelet_active_pods static=true gauge 1",
		"kubelet_desired_pods static=false gauge 2",
		"kubelet_desired_pods static=true gauge 1",
		"kubelet_managed_ephemeral_containers gauge 2",
		"kubelet_node_name node=n1 gauge 1",
		"kubelet_running_containers container_state=created gauge 1",
		"kubelet_running_containers container_state=exited gauge 1",
		"kubelet_running_containers container_state=running gauge 4",
		"kubelet_running_containers container_state=unknown gauge 0",
		"kubelet_running_pods gauge 3",
		"nodeagent_pods gauge 4")
}

// Each volume of a claim is reported once, as far as it was measured or a driver knows; others are not.
func TestVolumes(t *testing.T) {
	pod := named("p")
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: claim},
		{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "unmeasured", VolumeSource: claim},
		{Name: "driven", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "of-driver"}}},
		{Name: "sick", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "abnormal"}}},
		{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}},
	}
	sharer := named("q")
	sharer.Spec.Volumes = []corev1.Volume{{Name: "same", VolumeSource: claim}}
	v := diskusage.Volume{Usage: diskusage.Usage{Bytes: 5, Inodes: 6}, Space: diskusage.Space{Bytes: 70, BytesFree: 60,
		BytesAvailable: 50, Inodes: 40, InodesFree: 30}}
	own := v
	own.Space.Inodes = 0
	found := &diskusage.Found{Pods: map[types.UID]diskusage.Parcel{
		"p": {Volumes: map[string]diskusage.Volume{"data": v, "own": own, "scratch": v}},
		"q": {Volumes: map[string]diskusage.Volume{"same": v}},
	}}
	volumes := Volumes{Pods: func() []*corev1.Pod { return []*corev1.Pod{pod, sharer, named("new")} },
		Disk: func() *diskusage.Found { return found }, Drivers: func() volumestats.Answers { return driven }}
	ofDrivers := []string{
		"kubelet_volume_stats_available_bytes namespace=ns persistentvolumeclaim=of-driver gauge 2",
		"kubelet_volume_stats_capacity_bytes namespace=ns persistentvolumeclaim=of-driver gauge 3",
		"kubelet_volume_stats_health_status_abnormal namespace=ns persistentvolumeclaim=abnormal gauge 1",
		"kubelet_volume_stats_health_status_abnormal namespace=ns persistentvolumeclaim=of-driver gauge 0",
		"kubelet_volume_stats_inodes namespace=ns persistentvolumeclaim=of-driver gauge 6",
		"kubelet_volume_stats_inodes_free namespace=ns persistentvolumeclaim=of-driver gauge 5",
		"kubelet_volume_stats_inodes_used namespace=ns persistentvolumeclaim=of-driver gauge 4",
		"kubelet_volume_stats_used_bytes namespace=ns persistentvolumeclaim=of-driver gauge 1",
	}
	measured := append([]string{
		"kubelet_volume_stats_available_bytes namespace=ns persistentvolumeclaim=claim gauge 50",
		"kubelet_volume_stats_available_bytes namespace=ns persistentvolumeclaim=p-own gauge 50",
		"kubelet_volume_stats_capacity_bytes namespace=ns persistentvolumeclaim=claim gauge 70",
		"kubelet_volume_stats_capacity_bytes namespace=ns persistentvolumeclaim=p-own gauge 70",
		"kubelet_volume_stats_inodes namespace=ns persistentvolumeclaim=claim gauge 40",
		"kubelet_volume_stats_inodes_free namespace=ns persistentvolumeclaim=claim gauge 30",
		"kubelet_volume_stats_inodes_used namespace=ns persistentvolumeclaim=claim gauge 6",
		"kubelet_volume_stats_inodes_used namespace=ns persistentvolumeclaim=p-own gauge 6",
		"kubelet_volume_stats_used_bytes namespace=ns persistentvolumeclaim=claim gauge 5",
		"kubelet_volume_stats_used_bytes namespace=ns persistentvolumeclaim=p-own gauge 5",
	}, ofDrivers...)
	slices.Sort(measured)
	expect(t, shown(t, volumes), measured...)
	found = nil
	expect(t, shown(t, volumes), ofDrivers...)
}

// driven is what drivers say about volumes.
func driven(_ *corev1.Pod, v *corev1.Volume) (volumestats.Figures, bool) {
	switch v.Name {
	case "driven", "inline":
		return volumestats.Figures{
			Bytes: volumestats.Amounts{Available: ptr.To[uint64](2), Total: ptr.To[uint64](3), Used: ptr.To[uint64](1)},
			Inodes: volumestats.Amounts{Available: ptr.To[uint64](5), Total: ptr.To[uint64](6),
				Used: ptr.To[uint64](4)},
			Condition: &volumestats.Condition{}}, true
	case "sick":
		return volumestats.Figures{Condition: &volumestats.Condition{Abnormal: true}}, true
	}
	return volumestats.Figures{}, false
}

// Lists are counted with their duration and the time between them; the time of the last list counts only successful
// ones.
func TestRelists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRelists()
		for _, ok := range []bool{true, true, false} {
			began := time.Now()
			time.Sleep(time.Second)
			r.Listed(began, ok)
			time.Sleep(10 * time.Second)
		}
		expect(t, shown(t, r.Metrics()...),
			"kubelet_pleg_last_seen_seconds gauge 9.46684811e+08",
			"kubelet_pleg_relist_duration_seconds histogram 3 3 of 11 to 10",
			"kubelet_pleg_relist_interval_seconds histogram 2 22 of 11 to 10")
	})
}

func TestOusted(t *testing.T) {
	o := NewOusted()
	o.Evicted(pressure.Signal("memory.available"))
	expect(t, shown(t, o.Metrics()...), "kubelet_evictions eviction_signal=memory.available counter 1")
}
