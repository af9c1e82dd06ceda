package bench

import (
	"context"
	"fmt"
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

// starts is how many Pods are started one after the other, in turn through the API and by bare CRI calls.
const starts = 10

// BenchmarkPodStart compares a Pod's way from its creation to readiness with the three CRI calls that it cannot do without:
// RunPodSandbox, CreateContainer and StartContainer of the same Pod on the same runtime.
func BenchmarkPodStart(b *testing.B) {
	m := processes.New(b, 1)
	client, runtime := connect(b, m), dialRuntime(b, m)
	var keelson, bare time.Duration
	b.ResetTimer()
	for i := range starts {
		keelson += startPod(b, client, i)
		bare += startBare(b, runtime, i)
	}
	b.StopTimer()
	b.ReportMetric(float64(keelson.Milliseconds())/starts, "create-to-ready-ms")
	b.ReportMetric(float64(bare.Milliseconds())/starts, "bare-cri-ms")
	b.ReportMetric(float64(keelson)/float64(bare), "ratio")
}

// startPod measures with a watch, so that no polling interval is counted.
func startPod(b *testing.B, client kubernetes.Interface, i int) time.Duration {
	b.Helper()
	ctx := context.Background()
	watcher, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + pod(i).Name})
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

// startBare starts and removes one Pod. Its labels are not the nodeagent's, which leaves it alone.
func startBare(b *testing.B, runtime criv1.RuntimeServiceClient, i int) time.Duration {
	b.Helper()
	ctx := context.Background()
	name := fmt.Sprint("bare-", i)
	sandbox := &criv1.PodSandboxConfig{
		Metadata:     &criv1.PodSandboxMetadata{Name: name, Namespace: namespace, Uid: name},
		Hostname:     name,
		LogDirectory: b.TempDir(),
		Linux:        &criv1.LinuxPodSandboxConfig{CgroupParent: "/keelson-bench"},
	}
	begin := time.Now()
	run, err := runtime.RunPodSandbox(ctx, &criv1.RunPodSandboxRequest{Config: sandbox})
	if err != nil {
		b.Fatal(err)
	}
	created, err := runtime.CreateContainer(ctx, &criv1.CreateContainerRequest{
		PodSandboxId: run.PodSandboxId, SandboxConfig: sandbox,
		Config: &criv1.ContainerConfig{
			Metadata: &criv1.ContainerMetadata{Name: "main"}, Image: &criv1.ImageSpec{Image: "keelson.dev/hello:1"}, LogPath: "main.log",
			Linux: &criv1.LinuxContainerConfig{},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := runtime.StartContainer(ctx, &criv1.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begin)
	if _, err := runtime.StopPodSandbox(ctx, &criv1.StopPodSandboxRequest{PodSandboxId: run.PodSandboxId}); err != nil {
		b.Fatal(err)
	}
	if _, err := runtime.RemovePodSandbox(ctx, &criv1.RemovePodSandboxRequest{PodSandboxId: run.PodSandboxId}); err != nil {
		b.Fatal(err)
	}
	return took
}
