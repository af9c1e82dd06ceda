package servertest_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
	"keelson.dev/services/apiserver/internal/storage/backup"
)

// Clients of a mesh whose store moves to a cluster and back find their objects, at later versions than they have seen,
// and are told to list again. The apiserver uses neither store once it was left.
func TestMigratedStore(t *testing.T) {
	dir, external := t.TempDir(), servertest.SharedStore(t)
	embedded := func(c *inproc.Config) { c.DataDir = dir }
	servertest.OpenRawStore(t, external).Empty(t)
	cluster := inproc.NewConfig()
	external(cluster)
	migrate := func(to string) {
		t.Helper()
		var out, errOut bytes.Buffer
		if status := backup.Execute(t.Context(), []string{"migrate", "--to", to, "--quiet", "50ms", "--data-dir",
			dir, "--etcd-servers", cluster.Etcd.Servers[0]}, &out, &errOut); status != 0 {
			t.Fatalf("status %d, %s", status, errOut.String())
		}
	}
	var seen string
	with(t, embedded, func(client kubernetes.Interface) {
		made, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
			configMap("a", map[string]string{"k": "v"}), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen = made.ResourceVersion
	})
	migrate("etcd")
	unusable(t, embedded, "was moved to the etcd cluster at ")
	with(t, external, func(client kubernetes.Interface) { seen = follows(t, client, seen) })
	migrate("embedded")
	unusable(t, external, "was moved away from ")
	with(t, embedded, func(client kubernetes.Interface) { follows(t, client, seen) })
}

// with runs a server while use uses it.
func with(t *testing.T, change func(*inproc.Config), use func(kubernetes.Interface)) {
	t.Helper()
	config := servertest.NewConfig(t, t.TempDir())
	change(config)
	handle, err := inproc.Start(t.Context(), config, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(servertest.ConfigAs(handle.Address(), servertest.Admin))
	if err != nil {
		t.Fatal(err)
	}
	use(client)
	if err := handle.Stop(); err != nil {
		t.Fatal(err)
	}
}

func unusable(t *testing.T, change func(*inproc.Config), why string) {
	t.Helper()
	config := servertest.NewConfig(t, t.TempDir())
	change(config)
	handle, err := inproc.Start(t.Context(), config, zap.NewNop())
	if err == nil {
		_ = handle.Stop()
	}
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%v, want %q", err, why)
	}
}

// follows checks what a client finds that has seen a version of the ConfigMap, and returns the version of its next
// write.
func follows(t *testing.T, client kubernetes.Interface, seen string) (written string) {
	t.Helper()
	maps := client.CoreV1().ConfigMaps("default")
	got, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.Data["k"] != "v" {
		t.Fatalf("%v, %v", got, err)
	}
	before, _ := strconv.ParseInt(seen, 10, 64)
	if now, _ := strconv.ParseInt(got.ResourceVersion, 10, 64); now < before {
		t.Errorf("the version is %d, it was %d", now, before)
	}
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: seen})
	if err == nil {
		err = apierrors.FromObject((<-w.ResultChan()).Object)
		w.Stop()
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from %s: %v", seen, err)
	}
	got.Annotations = map[string]string{"written": seen}
	updated, err := maps.Update(t.Context(), got, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return updated.ResourceVersion
}
