package atomicdir

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"keelson.dev/kit/failpoint"
)

// texts returns files with the default mode.
func texts(contents map[string]string) Files {
	files := Files{}
	for path, text := range contents {
		files[path] = File{Data: []byte(text), Mode: 0o644}
	}
	return files
}

// read returns what a reader finds under the names of the folder, ignoring links that lead nowhere.
func read(t interface{ Fatal(...any) }, dir string) map[string]string {
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		top := filepath.Join(dir, entry.Name())
		resolved, err := filepath.EvalSymlinks(top)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err = filepath.WalkDir(resolved, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			found[entry.Name()+strings.TrimPrefix(path, resolved)] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func write(t *testing.T, dir string, files Files) bool {
	t.Helper()
	changed, err := Write(dir, files, -1)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// A path means what it means to the kernel, in the forms that the API accepts.
func TestPathsInALongForm(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, texts(map[string]string{"a//b": "1", "./c": "2", "d/": "3", "e/./f": "4"}))
	want := map[string]string{"a/b": "1", "c": "2", "d": "3", "e/f": "4"}
	if got := read(t, dir); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// SAF-120: files follow their source; names are added and removed with it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	for i, step := range []struct {
		contents map[string]string
		changed  bool
	}{
		{map[string]string{"a": "1", "b/c": "2"}, true},
		{map[string]string{"a": "1", "b/c": "2"}, false},
		{map[string]string{"a": "1", "b/d/e": "3"}, true},
		{map[string]string{"b": "a file now"}, true},
		{map[string]string{}, true},
		{map[string]string{}, false},
		{map[string]string{"a": "again"}, true},
	} {
		if changed := write(t, dir, texts(step.contents)); changed != step.changed {
			t.Errorf("step %d: changed %v", i, changed)
		}
		if got := read(t, dir); !maps.Equal(got, step.contents) {
			t.Errorf("step %d: got %v, want %v", i, got, step.contents)
		}
	}
}

func TestModesAndOwners(t *testing.T) {
	dir := t.TempDir()
	files := Files{"plain": {Mode: 0o600}, "script": {Mode: 0o755}, "own": {Mode: 0o400, UID: ptr.To[int64](1234)}}
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	write(t, dir, files)
	for name, want := range map[string]fs.FileMode{"plain": 0o600, "script": 0o755, "own": 0o400} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if uid := owner(t, filepath.Join(dir, "own")).Uid; uid != 1234 {
		t.Errorf("owner %d", uid)
	}
	files["plain"] = File{Mode: 0o640}
	if !write(t, dir, files) {
		t.Error("a new mode is no change")
	}
	files["own"] = File{Mode: 0o400, UID: ptr.To[int64](4321)}
	if !write(t, dir, files) || owner(t, filepath.Join(dir, "own")).Uid != 4321 {
		t.Error("a new owner is no change")
	}
}

// SAF-098: a group of the Pod can read all files, even if their mode says otherwise.
func TestGroup(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if _, err := Write(dir, Files{"d/f": {Mode: 0o400}}, 2345); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "d/f"))
	if err != nil || info.Mode() != 0o440 || owner(t, filepath.Join(dir, "d/f")).Gid != 2345 {
		t.Errorf("file: %v, %v", info, err)
	}
	info, err = os.Stat(filepath.Join(dir, "d"))
	if err != nil || info.Mode().Perm() != 0o775 || info.Mode()&fs.ModeSetgid == 0 ||
		owner(t, filepath.Join(dir, "d")).Gid != 2345 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
}

func owner(t *testing.T, path string) *syscall.Stat_t {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t)
}

func TestBadPaths(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"", "/etc/passwd", "../x", "a/../../x", "a/../b", "..data", "..x/y", ".", "./",
		"a/..", strings.Repeat("x", 5000)} {
		if _, err := Write(dir, texts(map[string]string{path: ""}), -1); err == nil {
			t.Errorf("%q was written", path)
		}
	}
	if _, err := Write(dir, texts(map[string]string{"a": "", "a/b": ""}), -1); err == nil {
		t.Error("a file inside a file was written")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("refused files left %v", entries)
	}
}

// steps are the points at which a write can be interrupted.
var steps = []string{"file.before", "names.after", "swap.before", "swap.between", "swap.after", "clear.after"}

// SAF-120: a reader sees all of the old or all of the new files at whichever step the writer is killed, and the next
// write leaves exactly the new files and nothing else.
func TestKilledAtAnyStep(t *testing.T) {
	base := t.TempDir()
	count := 0
	rapid.Check(t, func(t *rapid.T) {
		count++
		dir := filepath.Join(base, fmt.Sprint(count))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		old, next := draw(t, "old"), draw(t, "new")
		if _, err := Write(dir, texts(old), -1); err != nil {
			t.Fatal(err)
		}
		point := "nodeagent/atomicdir." + rapid.SampledFrom(steps).Draw(t, "step")
		program := "1*error(killed)"
		if passes := rapid.IntRange(0, 3).Draw(t, "passes"); passes > 0 {
			program = fmt.Sprintf("%d*off->%s", passes, program)
		}
		if err := failpoint.Arm(point, program); err != nil {
			t.Fatal(err)
		}
		_, err := Write(dir, texts(next), -1)
		failpoint.Disarm(point)
		if err != nil && !errors.Is(err, failpoint.ErrInjected) {
			t.Fatal(err)
		}
		if got := read(t, dir); !maps.Equal(got, old) && !maps.Equal(got, next) {
			t.Fatalf("killed at %s: got %v, neither %v nor %v", point, got, old, next)
		}
		if _, err := Write(dir, texts(next), -1); err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir); !maps.Equal(got, next) {
			t.Fatalf("after the next write: got %v, want %v", got, next)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 2+len(texts(next).topLevel()) {
			t.Fatalf("rests: %v", entries)
		}
	})
}

// draw makes a few files, some in folders; a name is either a file or a folder.
func draw(t *rapid.T, label string) map[string]string {
	paths := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c/x", "c/y", "d/e/f"}),
		rapid.ID[string]).Draw(t, label)
	contents := map[string]string{}
	for _, path := range paths {
		contents[path] = rapid.SampledFrom([]string{"", "1", "22", "333"}).Draw(t, path)
	}
	return contents
}

// A reader that runs all the time never sees a mixture.
func TestReadersNeverSeeAMixture(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, texts(map[string]string{"a": "0", "b": "0"}))
	stop, result := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				result <- nil
				return
			default:
			}
			current, err := os.Readlink(filepath.Join(dir, "..data"))
			if err != nil {
				result <- fmt.Errorf("no current files: %w", err)
				return
			}
			a, errA := os.ReadFile(filepath.Join(dir, current, "a"))
			b, errB := os.ReadFile(filepath.Join(dir, current, "b"))
			// A file removed while it is read is the reader's loss; a mixture is the writer's fault.
			if errA == nil && errB == nil && !slices.Equal(a, b) {
				result <- fmt.Errorf("saw %q and %q", a, b)
				return
			}
		}
	}()
	for i := range 300 {
		text := fmt.Sprint(i)
		write(t, dir, texts(map[string]string{"a": text, "b": text}))
	}
	close(stop)
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func FuzzWritePaths(f *testing.F) {
	for _, seed := range []string{"a", "a/b", "../a", "..", "/", "a/./b", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "volume")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := Write(dir, texts(map[string]string{path: "x"}), -1)
		if entries, _ := os.ReadDir(outer); len(entries) != 1 {
			t.Fatalf("%q wrote outside: %v", path, entries)
		}
		if err == nil && read(t, dir)[filepath.Clean(path)] != "x" {
			t.Errorf("%q was written but cannot be read", path)
		}
	})
}
