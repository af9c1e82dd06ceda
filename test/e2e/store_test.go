package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// TestStoreRestore takes a snapshot of a mesh that runs, goes on, and restores it under nodes and clients that know
// what came after: objects are back, Pods that were deleted run again, those that came later end, and clients that
// watch from a revision of the old store are told to start again.
func TestStoreRestore(t *testing.T) {
	m := processes.New(t, 1)
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	configMaps := client.CoreV1().ConfigMaps("default")
	configMap := func(name string) string {
		t.Helper()
		made, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made.ResourceVersion
	}
	awaitRunning(t, client, "stays", "deleted")
	before := configMap("kept")
	dir := t.TempDir()
	says := keelSays(t, m)
	says("keys at revision", "store", "snapshot", dir, "--keep", "3")
	files, err := filepath.Glob(filepath.Join(dir, "store-*.snapshot"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	says("as it was taken at", "store", "verify", files[0])

	cache := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	known := cache.Core().V1().ConfigMaps().Lister()
	cache.Start(t.Context().Done())
	cache.WaitForCacheSync(t.Context().Done())
	after := configMap("later")
	if err := configMaps.Delete(t.Context(), "kept", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, client, "late")
	eventually(t, "the Pod to be gone", func(ctx context.Context) bool {
		_, err := client.CoreV1().Pods("default").Get(ctx, "deleted", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if out, err := m.Keel(t.Context(), "store", "restore", files[0], "--replace"); err == nil ||
		!strings.Contains(out, "an apiserver has the store in ") {
		t.Errorf("the store was restored under its apiserver: %v, %s", err, out)
	}

	m.Kill(t, mesh.APIServer)
	says("the store that was there is kept as ", "store", "restore", files[0], "--replace")
	m.Start(t, mesh.APIServer)

	for _, from := range []string{before, after} {
		if err := watchFrom(t, client, from); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			t.Errorf("a watch from %s: %v", from, err)
		}
	}
	eventually(t, "the informer to know the restored objects", func(context.Context) bool {
		all, err := known.ConfigMaps("default").List(labels.Everything())
		names := map[string]bool{}
		for _, one := range all {
			names[one.Name] = true
		}
		return err == nil && names["kept"] && !names["later"]
	})
	awaitRunning(t, client, "stays", "deleted")
	runtime := m.Runtime(t)
	eventually(t, "the node to run what the restored store says", func(ctx context.Context) bool {
		running, err := runtime.ListPodSandbox(ctx, &criv1.ListPodSandboxRequest{Filter: &criv1.PodSandboxFilter{
			State: &criv1.PodSandboxStateValue{State: criv1.PodSandboxState_SANDBOX_READY}}})
		if err != nil {
			return false
		}
		names := map[string]int{}
		for _, sandbox := range running.Items {
			names[sandbox.Metadata.Name]++
		}
		return names["stays"] == 1 && names["deleted"] == 1 && names["late"] == 0
	})
}

// keelSays runs keel, which must go well and say want.
func keelSays(t *testing.T, m *processes.Mesh) func(want string, args ...string) {
	return func(want string, args ...string) {
		t.Helper()
		out, err := m.Keel(t.Context(), args...)
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("keel %s: %v, it says\n%s\nwant %q", strings.Join(args, " "), err, out, want)
		}
	}
}

// watchFrom is the error of a watch from a revision; nil: it goes on from there.
func watchFrom(t *testing.T, client kubernetes.Interface, revision string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := client.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{ResourceVersion: revision})
	if err != nil {
		return err
	}
	defer w.Stop()
	if event := <-w.ResultChan(); event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	return nil
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func(context.Context) bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 90*time.Second, true,
		func(ctx context.Context) (bool, error) { return is(ctx), nil }); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}
