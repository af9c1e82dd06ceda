package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// starts is how many Pods are started one after the other, in turn through the API and by bare CRI calls. Their medians
// are reported: single starts differ by a third.
const starts = 31

// pause is what goes before each start, so that none pays for the end of the one before.
const pause = 300 * time.Millisecond

// BenchmarkPodStart compares a Pod's way from its creation to readiness with the three CRI calls that it cannot do
// without: RunPodSandbox, CreateContainer and StartContainer with the same configuration on the same runtime.
func BenchmarkPodStart(b *testing.B) {
	m := processes.New(b, 1)
	client, runtime := connect(b, m), dialRuntime(b, m)
	var keelson, bare []time.Duration
	b.ResetTimer()
	for i := range starts {
		time.Sleep(pause)
		keelson = append(keelson, startPod(b, client, i))
		config := configOf(b, runtime, i)
		time.Sleep(pause)
		bare = append(bare, startBare(b, runtime, config, i))
	}
	b.StopTimer()
	b.ReportMetric(median(keelson), "create-to-ready-ms")
	b.ReportMetric(median(bare), "bare-cri-ms")
	b.ReportMetric(median(keelson)/median(bare), "ratio")
}

// median is in milliseconds.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Microseconds()) / 1000
}

// startPod measures with a watch, so that no polling interval is counted.
func startPod(b *testing.B, client kubernetes.Interface, i int) time.Duration {
	b.Helper()
	ctx := context.Background()
	watcher, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" +
		pod(i).Name})
	if err != nil {
		b.Fatal(err)
	}
	defer watcher.Stop()
	begin := time.Now()
	if _, err := client.CoreV1().Pods(namespace).Create(ctx, pod(i), metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	for event := range watcher.ResultChan() {
		if p, ok := podOf(event); ok && podview.IsReady(p) {
			return time.Since(begin)
		}
	}
	b.Fatalf("the watch of Pod %d ended before it was ready", i)
	return 0
}

func dialRuntime(b *testing.B, m *processes.Mesh) criv1.RuntimeServiceClient {
	b.Helper()
	for _, arg := range m.Of(b, mesh.NodeAgent)[0].Args {
		if endpoint, ok := strings.CutPrefix(arg, "--container-runtime-endpoint="); ok {
			conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { conn.Close() })
			return criv1.NewRuntimeServiceClient(conn)
		}
	}
	b.Fatal("the nodeagent has no --container-runtime-endpoint")
	return nil
}

// podConfig is what the runtime was asked for.
type podConfig struct {
	sandbox   *criv1.PodSandboxConfig
	container *criv1.ContainerConfig
}

// configOf returns what the nodeagent asked for to start Pod i. containerd keeps it and tells it when it is asked for
// details.
func configOf(b *testing.B, runtime criv1.RuntimeServiceClient, i int) podConfig {
	b.Helper()
	ctx := context.Background()
	list, err := runtime.ListContainers(ctx, &criv1.ListContainersRequest{Filter: &criv1.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": pod(i).Name},
	}})
	if err != nil || len(list.GetContainers()) != 1 {
		b.Fatalf("looking for the container of Pod %d: %d of them, %v", i, len(list.GetContainers()), err)
	}
	found := list.GetContainers()[0]
	sandbox, err := runtime.PodSandboxStatus(ctx, &criv1.PodSandboxStatusRequest{PodSandboxId: found.GetPodSandboxId(),
		Verbose: true})
	if err != nil {
		b.Fatal(err)
	}
	container, err := runtime.ContainerStatus(ctx, &criv1.ContainerStatusRequest{ContainerId: found.GetId(),
		Verbose: true})
	if err != nil {
		b.Fatal(err)
	}
	var config podConfig
	decodeConfig(b, sandbox.GetInfo(), &config.sandbox)
	decodeConfig(b, container.GetInfo(), &config.container)
	return config
}

func decodeConfig[T any](b *testing.B, info map[string]string, config *T) {
	b.Helper()
	details := struct {
		Config *T `json:"config"`
	}{config}
	if err := json.Unmarshal([]byte(info["info"]), &details); err != nil {
		b.Fatalf("reading the runtime's details: %v", err)
	}
}

// startBare starts and removes one Pod of that configuration. Without the nodeagent's labels it is none of its
// business.
func startBare(b *testing.B, runtime criv1.RuntimeServiceClient, config podConfig, i int) time.Duration {
	b.Helper()
	ctx := context.Background()
	name := fmt.Sprint("bare-", i)
	sandbox := config.sandbox
	sandbox.Metadata = &criv1.PodSandboxMetadata{Name: name, Namespace: namespace, Uid: name}
	sandbox.Labels, config.container.Labels = nil, nil
	sandbox.LogDirectory = b.TempDir()
	begin := time.Now()
	run, err := runtime.RunPodSandbox(ctx, &criv1.RunPodSandboxRequest{Config: sandbox})
	if err != nil {
		b.Fatal(err)
	}
	created, err := runtime.CreateContainer(ctx, &criv1.CreateContainerRequest{PodSandboxId: run.PodSandboxId,
		SandboxConfig: sandbox, Config: config.container})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := runtime.StartContainer(ctx,
		&criv1.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begin)
	if _, err := runtime.StopPodSandbox(ctx, &criv1.StopPodSandboxRequest{PodSandboxId: run.PodSandboxId}); err != nil {
		b.Fatal(err)
	}
	if _, err := runtime.RemovePodSandbox(ctx,
		&criv1.RemovePodSandboxRequest{PodSandboxId: run.PodSandboxId}); err != nil {
		b.Fatal(err)
	}
	return took
}
