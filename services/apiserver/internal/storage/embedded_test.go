package storage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
