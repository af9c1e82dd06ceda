package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/subprocess"
)

func TestWhatIsSavedIsLoaded(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	fresh, err := Load(layout)
	if !errors.Is(err, fs.ErrNotExist) || fresh == nil || fresh.Ports == nil {
		t.Fatalf("without a file: %+v, %v", fresh, err)
	}
	fresh.Ports["apiserver"] = 6443
	fresh.Nodes = []Node{{Name: "node-1", Images: map[string]string{"a": "1"}}}
	fresh.Put(subprocess.Process{Command: subprocess.Command{Name: "apiserver", Path: "/p"}, PID: 42, StartTime: 7,
		BootID: "b"})
	if err := fresh.Save(layout); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(layout)
	if err != nil || !reflect.DeepEqual(loaded, fresh) {
		t.Errorf("got %+v, %v, want %+v", loaded, err, fresh)
	}
	if info, err := os.Stat(layout.State()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

func TestPutReplacesByName(t *testing.T) {
	var s State
	for pid, name := range map[int]string{1: "a"} {
		s.Put(subprocess.Process{Command: subprocess.Command{Name: name}, PID: pid})
	}
	s.Put(subprocess.Process{Command: subprocess.Command{Name: "b"}, PID: 2})
	s.Put(subprocess.Process{Command: subprocess.Command{Name: "a"}, PID: 3})
	if got, ok := s.Find("a"); !ok || got.PID != 3 || len(s.Processes) != 2 {
		t.Errorf("got %+v", s.Processes)
	}
	if _, ok := s.Find("c"); ok {
		t.Error("found what was never put")
	}
}

func TestUnreadableRecordsAreRefused(t *testing.T) {
	layout := plan.Layout{Dir: t.TempDir()}
	for content, want := range map[string]string{`{"version": 99}`: "knows version 1",
		`{`: "reading " + layout.State()} {
		if err := os.WriteFile(layout.State(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(layout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", content, err, want)
		}
	}
}

func TestOneKeelAtATime(t *testing.T) {
	layout := plan.Layout{Dir: filepath.Join(t.TempDir(), "new")}
	unlock, err := Open(layout)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(layout); err == nil || !strings.Contains(err.Error(), "another keel is at work in "+layout.Dir) {
		t.Errorf("a second one: %v", err)
	}
	unlock()
	again, err := Open(layout)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	again()
}

func TestForeignFoldersAreRefused(t *testing.T) {
	files := plan.Layout{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(files.Dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(files); err == nil || !strings.Contains(err.Error(), "holds files and no keel.json") {
		t.Errorf("a folder with files: %v", err)
	}
	other := plan.Layout{Dir: t.TempDir()}
	if err := unix.Chown(other.Dir, 12345, -1); err != nil {
		t.Fatalf("the test needs root: %v", err)
	}
	if _, err := Open(other); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("another user's folder: %v", err)
	}
	file := plan.Layout{Dir: filepath.Join(files.Dir, "thesis.txt")}
	if _, err := Open(file); err == nil || !strings.HasPrefix(err.Error(), "--data-dir: ") {
		t.Errorf("a file: %v", err)
	}
}
