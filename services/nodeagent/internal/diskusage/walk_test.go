package diskusage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
)

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A volume's usage is how much of the disk its files use, each counted once; nothing outside counts.
func TestFolder(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "big"), 1<<20)
	dir := t.TempDir()
	bare, err := Folder(t.Context(), dir, Enough{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a"), 64<<10)
	write(t, filepath.Join(dir, "b", "c", "d"), 64<<10)
	for link, target := range map[string]string{"link": outside, "b/file": filepath.Join(outside, "big"), "loop": dir} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b", "again")); err != nil {
		t.Fatal(err)
	}
	got, err := Folder(t.Context(), dir, Enough{})
	// Folders and links may use some blocks themselves.
	if used := got.Bytes - bare.Bytes; err != nil || used < 128<<10 || used > 128<<10+64<<10 || got.TooDeep {
		t.Errorf("two files of 64 KiB take %d bytes, %v", used, err)
	}
	if got, err := Folder(t.Context(), filepath.Join(dir, "nowhere"), Enough{}); err != nil || got.Bytes != 0 {
		t.Errorf("a folder that is not there holds %d bytes, %v", got.Bytes, err)
	}
	// An amount that decides the question ends the measurement, so that the limit bounds its cost.
	for i := range 10 {
		write(t, filepath.Join(dir, fmt.Sprint("more", i)), 64<<10)
	}
	got, err = Folder(t.Context(), dir, Enough{Bytes: 64 << 10})
	if err != nil || got.Bytes <= 64<<10 || got.Bytes > 256<<10 {
		t.Errorf("looking for more than 64 KiB measured %d bytes, %v", got.Bytes, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Folder(ended, dir, Enough{}); !errors.Is(err, context.Canceled) {
		t.Errorf("measuring went on after its end: %v", err)
	}
}

// Folders that are nested without end neither exhaust the agent nor hide their contents.
func TestDepth(t *testing.T) {
	for depth, want := range map[int]bool{999: false, 1000: true} {
		dir := t.TempDir()
		plainfiletest.Nest(t, dir, depth)
		if got, err := Folder(t.Context(), dir, Enough{}); err != nil || got.TooDeep != want {
			t.Errorf("%d levels: too deep %v, %v; want %v", depth, got.TooDeep, err, want)
		}
	}
}

// Inodes are counted one by one, including folders and links, files with several names once; enough of them end the
// measurement.
func TestInodes(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a", "file"), 1)
	if err := errors.Join(os.Link(filepath.Join(dir, "a", "file"), filepath.Join(dir, "again")),
		os.Symlink("/", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	if got, err := Folder(t.Context(), dir, Enough{}); err != nil || got.Inodes != 4 {
		t.Errorf("a folder, one in it, a file with two names and a link are %d inodes, %v; want 4", got.Inodes, err)
	}
	if got, err := Folder(t.Context(), dir, Enough{Inodes: 2}); err != nil || got.Inodes != 3 {
		t.Errorf("looking for more than 2 inodes counted %d, %v; want 3", got.Inodes, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if got, err := Folder(t.Context(), link, Enough{}); err == nil {
		t.Errorf("a link was followed and measured as %+v", got)
	}
}
