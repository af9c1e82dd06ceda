package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh/processes"
)

// pause is what goes before each round, so that none pays for the end of the one before.
const pause = 150 * time.Millisecond

// BenchmarkPodStart compares a Pod's way from its creation to readiness with the three CRI calls that it cannot do
// without (RunPodSandbox, CreateContainer and StartContainer with the same configuration on the same runtime), and its
// way from its deletion until it is gone with those that end it (StopContainer, StopPodSandbox and RemovePodSandbox).
// So many Pods come and go at once, through the API and by bare calls in turn.
func BenchmarkPodStart(b *testing.B) {
	for _, row := range []struct{ atOnce, rounds int }{{1, 101}, {10, 10}, {50, 2}} {
		b.Run(fmt.Sprint("at-once=", row.atOnce), func(b *testing.B) { measureStarts(b, row.atOnce, row.rounds) })
	}
}

// times are the times of single Pods.
type times struct{ start, stop []time.Duration }

func measureStarts(b *testing.B, atOnce, rounds int) {
	b.Helper()
	m := processes.New(b, 1)
	client, runtime := connect(b, m), m.Runtime(b)
	var keelson, bare times
	before := readTraffic(b, m).statusWrites()
	b.ResetTimer()
	for round := range rounds {
		var pods []*corev1.Pod
		for i := range atOnce {
			pods = append(pods, pod(round*atOnce+i))
		}
		time.Sleep(pause)
		keelson.start = append(keelson.start, startPods(b, client, pods)...)
		bares := make([]*barePod, atOnce)
		for i, p := range pods {
			bares[i] = newBarePod(b, runtime, p.Name)
		}
		time.Sleep(pause)
		bare.start = append(bare.start, timed(b, bares, (*barePod).start)...)
		time.Sleep(pause)
		bare.stop = append(bare.stop, timed(b, bares, (*barePod).stop)...)
		time.Sleep(pause)
		keelson.stop = append(keelson.stop, stopPods(b, client, pods)...)
	}
	b.StopTimer()
	reportTimes(b, "ready", "bare-start", "start", keelson.start, bare.start)
	reportTimes(b, "gone", "bare-stop", "stop", keelson.stop, bare.stop)
	b.ReportMetric((readTraffic(b, m).statusWrites()-before)/float64(atOnce*rounds), "status-writes/pod")
}

// reportTimes gives medians and the times that one of a hundred exceeds, and the ratio of the medians.
func reportTimes(b *testing.B, what, bareWhat, ratio string, keelson, bare []time.Duration) {
	b.Helper()
	for _, side := range []struct {
		name  string
		times []time.Duration
	}{{what, keelson}, {bareWhat, bare}} {
		b.ReportMetric(quantile(side.times, 50), side.name+"-p50-ms")
		b.ReportMetric(quantile(side.times, 99), side.name+"-p99-ms")
	}
	b.ReportMetric(quantile(keelson, 50)/quantile(bare, 50), ratio+"-ratio")
}

// quantile returns the time that so many of a hundred do not exceed, in milliseconds.
func quantile(times []time.Duration, percent int) float64 {
	slices.Sort(times)
	return float64(times[(len(times)-1)*percent/100].Microseconds()) / 1000
}

// startPods makes Pods at once and returns how long each took to be ready.
func startPods(b *testing.B, client kubernetes.Interface, pods []*corev1.Pod) []time.Duration {
	b.Helper()
	return followed(b, client, pods,
		func(ctx context.Context, p *corev1.Pod) error {
			_, err := client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
			return err
		},
		func(_ watch.Event, p *corev1.Pod) bool { return podview.IsReady(p) })
}

// stopPods deletes Pods at once and returns how long each took to be gone.
func stopPods(b *testing.B, client kubernetes.Interface, pods []*corev1.Pod) []time.Duration {
	b.Helper()
	return followed(b, client, pods,
		func(ctx context.Context, p *corev1.Pod) error {
			return client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
		},
		func(e watch.Event, _ *corev1.Pod) bool { return e.Type == watch.Deleted })
}

// followed asks for something of each Pod and returns how long each took to be done. It measures with a watch, so that
// no polling interval is counted.
func followed(b *testing.B, client kubernetes.Interface, pods []*corev1.Pod,
	ask func(context.Context, *corev1.Pod) error, done func(watch.Event, *corev1.Pod) bool) []time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		b.Fatal(err)
	}
	watcher, err := client.CoreV1().Pods(namespace).Watch(ctx,
		metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		b.Fatal(err)
	}
	defer watcher.Stop()
	var mu sync.Mutex // guards began
	began := map[string]time.Time{}
	var asked errgroup.Group
	for _, p := range pods {
		asked.Go(func() error {
			mu.Lock()
			began[p.Name] = time.Now()
			mu.Unlock()
			return ask(ctx, p)
		})
	}
	took := map[string]time.Duration{}
	for len(took) < len(pods) {
		event, open := <-watcher.ResultChan()
		p, ok := podOf(event)
		if !open || !ok {
			b.Fatalf("the watch ended when %d of %d Pods were done: %v; asking for them: %v", len(took), len(pods),
				event, asked.Wait())
		}
		mu.Lock()
		if at, mine := began[p.Name]; mine && took[p.Name] == 0 && done(event, p) {
			took[p.Name] = time.Since(at)
		}
		mu.Unlock()
	}
	if err := asked.Wait(); err != nil {
		b.Fatal(err)
	}
	return slices.Collect(maps.Values(took))
}

// podConfig is what the runtime was asked for.
type podConfig struct {
	sandbox   *criv1.PodSandboxConfig
	container *criv1.ContainerConfig
}

// configOf returns the nodeagent's requests that started a Pod. containerd keeps them and returns them in verbose
// answers.
func configOf(b *testing.B, runtime criv1.RuntimeServiceClient, pod string) podConfig {
	b.Helper()
	ctx := context.Background()
	list, err := runtime.ListContainers(ctx, &criv1.ListContainersRequest{Filter: &criv1.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": pod},
	}})
	if err != nil || len(list.GetContainers()) != 1 {
		b.Fatalf("looking for the container of Pod %s: %d of them, %v", pod, len(list.GetContainers()), err)
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

// barePod is a Pod of that configuration which is started without the nodeagent. Without the nodeagent's labels it is
// none of its business.
type barePod struct {
	runtime   criv1.RuntimeServiceClient
	config    podConfig
	sandbox   string
	container string
}

func newBarePod(b *testing.B, runtime criv1.RuntimeServiceClient, like string) *barePod {
	b.Helper()
	p := &barePod{runtime: runtime, config: configOf(b, runtime, like)}
	name := "bare-" + like
	p.config.sandbox.Metadata = &criv1.PodSandboxMetadata{Name: name, Namespace: namespace, Uid: name}
	p.config.sandbox.Labels, p.config.container.Labels = nil, nil
	p.config.sandbox.LogDirectory = b.TempDir()
	return p
}

func (p *barePod) start(ctx context.Context) error {
	run, err := p.runtime.RunPodSandbox(ctx, &criv1.RunPodSandboxRequest{Config: p.config.sandbox})
	if err != nil {
		return err
	}
	p.sandbox = run.PodSandboxId
	created, err := p.runtime.CreateContainer(ctx, &criv1.CreateContainerRequest{PodSandboxId: p.sandbox,
		SandboxConfig: p.config.sandbox, Config: p.config.container})
	if err != nil {
		return err
	}
	p.container = created.ContainerId
	_, err = p.runtime.StartContainer(ctx, &criv1.StartContainerRequest{ContainerId: p.container})
	return err
}

func (p *barePod) stop(ctx context.Context) error {
	_, err := p.runtime.StopContainer(ctx, &criv1.StopContainerRequest{ContainerId: p.container, Timeout: 30})
	if err != nil {
		return err
	}
	if _, err := p.runtime.StopPodSandbox(ctx, &criv1.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		return err
	}
	_, err = p.runtime.RemovePodSandbox(ctx, &criv1.RemovePodSandboxRequest{PodSandboxId: p.sandbox})
	return err
}

// timed does something to all Pods at once and returns how long each took.
func timed(b *testing.B, pods []*barePod, do func(*barePod, context.Context) error) []time.Duration {
	b.Helper()
	took := make([]time.Duration, len(pods))
	var all errgroup.Group
	for i, p := range pods {
		all.Go(func() error {
			began := time.Now()
			err := do(p, context.Background())
			took[i] = time.Since(began)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		b.Fatal(err)
	}
	return took
}
