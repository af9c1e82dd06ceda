package servertest

import (
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/storage"
)

// SharedStore starts a store, which ends with the test, and returns what makes an apiserver use it.
func SharedStore(t testing.TB) func(*inproc.Config) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "etcd")
	etcd, err := storage.StartEmbedded(t.Context(), dir, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	return func(c *inproc.Config) { c.Etcd.Servers = []string{"unix://" + filepath.Join(dir, "etcd.sock")} }
}
