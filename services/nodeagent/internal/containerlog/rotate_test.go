package containerlog

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
)

// rotating is a log whose runtime creates a new file when it is asked to reopen it.
type rotating struct {
	*Rotator
	path    string
	reopens int
	err     error
}

func newRotating(t *testing.T) *rotating {
	r := &rotating{path: logFile(t, "")}
	r.Rotator = &Rotator{MaxSize: 10, MaxFiles: 4, Reopen: func(context.Context, string) error {
		r.reopens++
		if r.err != nil {
			return r.err
		}
		return os.WriteFile(r.path, nil, 0o644)
	}}
	return r
}

func (r *rotating) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(r.path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r *rotating) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(r.path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func at(second int) time.Time { return time.Date(2026, 1, 31, 10, 0, second, 0, time.UTC) }

func TestSmallLogsAreLeftAlone(t *testing.T) {
	r := newRotating(t)
	r.write(t, "short")
	if err := r.Rotate(t.Context(), "c", logAt(r.path), at(0)); err != nil || r.reopens != 0 || len(r.files(t)) != 1 {
		t.Errorf("%v, %d reopened, %v", err, r.reopens, r.files(t))
	}
}

func TestRotationKeepsTheNewestFiles(t *testing.T) {
	r := newRotating(t)
	for i := range 7 {
		r.write(t, strings.Repeat(string(rune('a'+i)), 20))
		if err := r.Rotate(t.Context(), "c", logAt(r.path), at(i)); err != nil {
			t.Fatal(err)
		}
		if got := len(r.files(t)); got > 4 {
			t.Fatalf("%d files after %d rotations", got, i+1)
		}
	}
	want := []string{"0.log", "0.log.20260131-100004.gz", "0.log.20260131-100005", "0.log.20260131-100006"}
	if got := r.files(t); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	file, err := os.Open(r.path + ".20260131-100004.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(unpacked); err != nil || string(data) != strings.Repeat("e", 20) {
		t.Errorf("%q, %v", data, err)
	}
}

// A runtime that does not reopen the file goes on writing to the old one, which therefore keeps its name.
func TestFailedReopenPutsTheFileBack(t *testing.T) {
	r := newRotating(t)
	r.write(t, "long enough to rotate")
	r.err = errors.New("no answer")
	if err := r.Rotate(t.Context(), "c", logAt(r.path), at(0)); !errors.Is(err, r.err) {
		t.Errorf("got %v", err)
	}
	if data, _ := os.ReadFile(r.path); string(data) != "long enough to rotate" || len(r.files(t)) != 1 {
		t.Errorf("%q, %v", data, r.files(t))
	}
}

// If a nodeagent was killed after it moved the file away, the next one requests the new file.
func TestRotationAfterACrash(t *testing.T) {
	r := newRotating(t)
	r.write(t, "long enough to rotate")
	if err := os.Rename(r.path, r.path+".20260131-100000"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.path+".20260131-095900"+unfinished, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.Rotate(t.Context(), "c", logAt(r.path), at(5)); err != nil || r.reopens != 1 {
		t.Fatalf("%v, %d reopened", err, r.reopens)
	}
	r.write(t, "long enough to rotate")
	if err := r.Rotate(t.Context(), "c", logAt(r.path), at(6)); err != nil {
		t.Fatal(err)
	}
	want := []string{"0.log", "0.log.20260131-100000", "0.log.20260131-100006"}
	if got := r.files(t); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRotationFailpoint(t *testing.T) {
	r := newRotating(t)
	r.write(t, "long enough to rotate")
	if err := failpoint.Arm("nodeagent/log.reopen.before", "1*error(stop)"); err != nil {
		t.Fatal(err)
	}
	defer failpoint.Disarm("nodeagent/log.reopen.before")
	if err := r.Rotate(t.Context(), "c", logAt(r.path), at(0)); !errors.Is(err, failpoint.ErrInjected) ||
		r.reopens != 0 {
		t.Errorf("%v, %d reopened", err, r.reopens)
	}
	if err := r.Rotate(t.Context(), "c", logAt(r.path), at(1)); err != nil || r.reopens != 1 {
		t.Errorf("%v, %d reopened", err, r.reopens)
	}
}

// If a container replaces its logs by something else, rotation reads and writes no other file and does not block.
func TestRotateOnlyPlainLogs(t *testing.T) {
	for name, lay := range plainfiletest.Traps {
		t.Run(name, func(t *testing.T) {
			r := newRotating(t)
			if err := os.Remove(r.path); err != nil {
				t.Fatal(err)
			}
			lay(t, r.path)
			if err := r.Rotate(t.Context(), "c", logAt(r.path), at(0)); !errors.Is(err, plainfile.ErrNotPlain) ||
				r.reopens != 0 {
				t.Errorf("in place of the log: %v, %d reopened", err, r.reopens)
			}
			r = newRotating(t)
			r.write(t, strings.Repeat("x", 20))
			old := r.path + ".20260131-090000"
			lay(t, old)
			r.write(t, strings.Repeat("x", 20))
			if err := os.WriteFile(r.path+".20260131-090001", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := r.Rotate(t.Context(), "c", logAt(r.path), at(0)); err != nil || r.reopens != 1 {
				t.Errorf("in place of a rotated log: %v, %d reopened", err, r.reopens)
			}
			if _, err := os.Lstat(old); err == nil {
				t.Error("it is still there")
			}
			if text, err := os.ReadFile(old + ".other"); err == nil && string(text) != plainfiletest.Secret {
				t.Errorf("the other file holds %q", text)
			}
		})
	}
}

// A link that replaces the folder of the logs is not followed.
func TestRotateFollowsNoFolder(t *testing.T) {
	r := newRotating(t)
	r.write(t, strings.Repeat("x", 20))
	root := t.TempDir()
	if err := os.Symlink(filepath.Dir(r.path), filepath.Join(root, "app")); err != nil {
		t.Fatal(err)
	}
	log := Log{Root: plainfile.Root(root), Path: filepath.Join(root, "app", "0.log")}
	if err := r.Rotate(t.Context(), "c", log, at(0)); !errors.Is(err, plainfile.ErrNotPlain) || len(r.files(t)) != 1 {
		t.Errorf("%v, files %v", err, r.files(t))
	}
}
