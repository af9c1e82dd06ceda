package host

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestSocketsOfKilledShimsGo(t *testing.T) {
	state, sockets := t.TempDir(), t.TempDir()
	lay := func(name string) string {
		path := filepath.Join(sockets, name)
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		listener.SetUnlinkOnClose(false)
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bundle := func(id, address string) {
		dir := filepath.Join(state, "io.containerd.runtime.v2.task", "k8s.io", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "bootstrap.json"),
			fmt.Appendf(nil, `{"version":3,"address":"unix://%s","protocol":"ttrpc"}`, address), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, others, file := lay("own"), lay("others"), filepath.Join(sockets, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bundle("a", own)
	bundle("b", own) // a Pod's containers share their shim
	bundle("c", file)
	for range 2 {
		if err := RemoveShimSockets(state); err != nil {
			t.Fatal(err)
		}
	}
	for path, stays := range map[string]bool{own: false, others: true, file: true} {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s stays: %v, want %v", filepath.Base(path), err == nil, stays)
		}
	}
}

func TestEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "net", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		if err := Empty(path); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
