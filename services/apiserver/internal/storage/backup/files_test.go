package backup

import (
	"context"
	"crypto/sha256"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func equalSets(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// smallDisk is a file system with little room.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// sealed has the checksum of data behind it.
func sealed(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(append([]byte{}, data...), sum[:]...)
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 90*time.Second, true,
		func(context.Context) (bool, error) { return is(), nil }); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func keyValue(key string, lease int64) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(key), Lease: lease}
}

func changes(events ...*clientv3.Event) clientv3.WatchResponse {
	return clientv3.WatchResponse{Events: events}
}
