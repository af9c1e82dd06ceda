package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/mesh/simnode"
)

// clients is how many requests are under way at once, as in baseline figures.
const clients = 16

// patience is how long a benchmark waits for what must come.
const patience = 10 * time.Minute

// namespace holds everything that a benchmark makes.
const namespace = "bench"

// connect returns a client that speaks protobuf and does not throttle, and makes the namespace.
func connect(tb testing.TB, m mesh.Mesh) kubernetes.Interface {
	tb.Helper()
	config := m.Admin()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		tb.Fatalf("building the client: %v", err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(context.Background(), ns, metav1.CreateOptions{}); err != nil {
		tb.Fatalf("making the namespace: %v", err)
	}
	await(tb, "the default service account", func() (string, error) {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(context.Background(), "default", metav1.GetOptions{})
		if err != nil {
			return err.Error(), nil //nolint:nilerr // Not being there yet is the answer.
		}
		return "", nil
	})
	return client
}

// each calls do for 0 to n-1, with as many calls at once as there are clients.
func each(tb testing.TB, n int, do func(ctx context.Context, i int) error) {
	tb.Helper()
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(clients)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
}

// await polls until look answers "".
func await(tb testing.TB, what string, look func() (string, error)) {
	tb.Helper()
	const interval = 200 * time.Millisecond
	answer := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(interval) {
		var err error
		if answer, err = look(); err != nil {
			tb.Fatalf("waiting for %s: %v", what, err)
		}
		if answer == "" {
			return
		}
	}
	tb.Fatalf("waited %v for %s; at last: %s", patience, what, answer)
}

// awaitObjects watches until there are as many objects as wanted and each is done, so that waiting costs the server no
// more than one watcher.
func awaitObjects[T runtime.Object](tb testing.TB, source cache.ListerWatcher, example T, want int, done func(T) bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	finished, all := sets.New[string](), sets.New[string]()
	note := func(object any, there bool) {
		name := object.(metav1.Object).GetName()
		all.Delete(name)
		finished.Delete(name)
		if there {
			all.Insert(name)
		}
		if there && done(object.(T)) {
			finished.Insert(name)
		}
	}
	ended := func() bool { return len(all) == want && len(finished) == want }
	listed := func(store cache.Store) (bool, error) {
		for _, object := range store.List() {
			note(object, true)
		}
		return ended(), nil
	}
	changed := func(event watch.Event) (bool, error) {
		note(event.Object, event.Type != watch.Deleted)
		return ended(), nil
	}
	if _, err := watchtools.UntilWithSync(ctx, source, example, listed, changed); err != nil {
		tb.Fatalf("waiting for %d objects, of %d there are %d done: %v", want, len(all), len(finished), err)
	}
}

// objects lists and watches what the benchmarks made of one resource.
func objects(client rest.Interface, resource string) cache.ListerWatcher {
	return listed{cache.NewListWatchFromClient(client, resource, namespace, fields.Everything())}
}

// listed begins with a list and not with an event for each object that there is: who waits would have all objects of
// the benchmark sent again.
type listed struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is how client-go asks for it.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// newUnwatched starts a mesh that does not ask how its nodes are: their heartbeats would be part of every figure.
func newUnwatched(tb testing.TB) *processes.Mesh {
	tb.Helper()
	m := processes.New(tb, 0)
	m.Restart(tb, mesh.PodGC, processes.Known(tb, "keelson-"+string(mesh.PodGC), nil,
		[]string{"--node-monitor-grace-period=24h", "--node-startup-grace-period=24h"})...)
	return m
}

// createNodes registers nodes without an agent, and waits until they take Pods.
func createNodes(tb testing.TB, client kubernetes.Interface, n int) []string {
	tb.Helper()
	names := make([]string, n)
	for i := range n {
		names[i] = fmt.Sprintf("sim-%05d", i)
	}
	each(tb, n, func(ctx context.Context, i int) error { return simnode.Register(ctx, client, names[i]) })
	await(tb, "all nodes to take Pods", func() (string, error) {
		list, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return "", err
		}
		tainted := 0
		for i := range list.Items {
			tainted += len(list.Items[i].Spec.Taints)
		}
		if len(list.Items) < n || tainted > 0 {
			return fmt.Sprintf("%d nodes with %d taints", len(list.Items), tainted), nil
		}
		return "", nil
	})
	return names
}

// pod is the plain Pod of the benchmarks.
func pod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", i), Labels: map[string]string{"app": "bench"}},
		Spec:       podSpec("keelson.dev/hello:1"),
	}
}

func podSpec(image string) corev1.PodSpec {
	no := false
	return corev1.PodSpec{
		AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{{
			Name: "main", Image: image,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: quantity("10m"), corev1.ResourceMemory: quantity("16Mi"),
			}},
		}},
	}
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// podOf returns the Pod of an event that carries one.
func podOf(event watch.Event) (*corev1.Pod, bool) {
	p, ok := event.Object.(*corev1.Pod)
	return p, ok
}
