package storage

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// TestLongDataDir: a path that is too long for a unix socket is no obstacle.
func TestLongDataDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 20), strings.Repeat("path", 20))
	e, err := StartEmbedded(t.Context(), dir, zap.NewNop())
	if err != nil {
		t.Fatalf("starting: %v", err)
	}
	defer e.Close()
	client := e.Client()
	if _, err := client.KV.Put(t.Context(), "/k", "v"); err != nil {
		t.Errorf("writing: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, socketName)); err != nil || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}

func TestRestartKeepsData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for i := range 3 {
		e, err := StartEmbedded(t.Context(), dir, zap.NewNop())
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		got, err := e.Client().KV.Get(t.Context(), "/k")
		if err != nil || got.Count != int64(min(i, 1)) {
			t.Errorf("start %d: %d keys, %v", i, got.Count, err)
		}
		if _, err := e.Client().KV.Put(t.Context(), "/k", "v"); err != nil {
			t.Errorf("start %d: %v", i, err)
		}
		e.Close()
	}
}

// The socket that etcdctl uses takes the place of one that a killed process has left, answers while the store is open,
// and goes with it.
func TestSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, socketName)
	left, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	must(t, left.Close())
	e, err := StartEmbedded(t.Context(), dir, zap.NewNop())
	if err != nil {
		t.Fatalf("starting: %v", err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + path}, DialTimeout: soon})
	if err != nil {
		e.Close()
		t.Fatalf("connecting: %v", err)
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Put(t.Context(), "/k", "v"); err != nil {
		t.Errorf("writing by the socket: %v", err)
	}
	if got, err := e.Client().KV.Get(t.Context(), "/k"); err != nil || got.Count != 1 {
		t.Errorf("what was written by the socket: %v, %v", got, err)
	}
	client.Watch(t.Context(), "/k") // an open call does not hold up the end
	e.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket of a closed store: %v", err)
	}
	select {
	case err := <-e.Failed():
		t.Errorf("a store that was told to close failed: %v", err)
	default:
	}
}

// A store that ends without being told to is a failure of the apiserver.
func TestEndedByItself(t *testing.T) {
	e, err := StartEmbedded(t.Context(), filepath.Join(t.TempDir(), "data"), zap.NewNop())
	if err != nil {
		t.Fatalf("starting: %v", err)
	}
	defer e.Close()
	e.etcd.server.HardStop()
	select {
	case err := <-e.Failed():
		if !errors.Is(err, errEnded) {
			t.Errorf("failed with %v", err)
		}
	case <-time.After(soon):
		t.Error("nothing told that the store has ended")
	}
}

// What is in the way of the socket says nothing about the store, which is not to be restored for it.
func TestNoSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.MkdirAll(filepath.Join(dir, socketName, "taken"), 0o700))
	e, err := StartEmbedded(t.Context(), dir, zap.NewNop())
	if err == nil {
		e.Close()
		t.Fatal("started without a socket")
	}
	if text := err.Error(); !strings.Contains(text, socketName) || strings.Contains(text, "restore") {
		t.Error(text)
	}
}
