package servertest_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
	"keelson.dev/services/apiserver/internal/storage"
)

// TestEtcdServers: two servers share an etcd that runs elsewhere; what one writes the other shows.
func TestEtcdServers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	etcd, err := storage.StartEmbedded(t.Context(), dir, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	external := func(c *inproc.Config) { c.Etcd.Servers = []string{"unix://" + filepath.Join(dir, "etcd.sock")} }
	one, two := servertest.Start(t, external), servertest.Start(t, external)
	create(t, one.Client.CoreV1().ConfigMaps("default"), configMap("a", map[string]string{"k": "v"}))
	w, err := two.Client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if got, _ := next(t, w); got != "ADDED a" {
		t.Errorf("the other server's first event: %s", got)
	}
	if c, err := two.Client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{}); err != nil || c.Data["k"] != "v" {
		t.Errorf("the other server has %v, %v", c, err)
	}
}
