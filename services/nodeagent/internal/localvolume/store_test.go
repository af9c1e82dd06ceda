package localvolume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/volume/mount"
)

// newStore returns a Store on real disk with real mounts.
func newStore(t *testing.T) *Store {
	return NewStore(podfiles.Root{Dir: t.TempDir(), LogDir: t.TempDir()}, mount.Kernel{})
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// begin makes a Pod use the volume and returns its folder.
func begin(t *testing.T, s *Store, pod types.UID) string {
	t.Helper()
	must(t, s.files.Make(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: pod}}))
	must(t, s.Begin(pod, "data", Use{Claim: "ns/data", Volume: handle, Handle: handle, Path: s.Path(handle)}))
	return s.Path(handle)
}

// left returns all that local volumes have left on disk.
func left(t *testing.T, s *Store) (names []string) {
	t.Helper()
	for _, dir := range []string{"local-volumes", "local-volumes-made"} {
		entries, err := os.ReadDir(filepath.Join(s.files.Dir, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, dir+"/"+e.Name())
		}
	}
	return names
}

// A folder is removed when no Pod uses it, with all that Pods have left in it, and nothing outside is removed.
func TestRemove(t *testing.T) {
	s := newStore(t)
	path, outside := begin(t, s, "u-1"), t.TempDir()
	precious := filepath.Join(outside, "precious")
	must(t, os.WriteFile(precious, []byte("x"), 0o600), os.MkdirAll(filepath.Join(path, "a", "b"), 0o700),
		os.Symlink(outside, filepath.Join(path, "link")), os.Symlink("..", filepath.Join(path, "up")),
		os.Symlink("/proc/self/root", filepath.Join(path, "a", "root")),
		unix.Mkfifo(filepath.Join(path, "a", "fifo"), 0o600), unix.Mknod(filepath.Join(path, "disk"),
			unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))), os.Mkdir(filepath.Join(path, "mount"), 0o700))
	dir, err := os.Open(outside)
	must(t, err)
	defer dir.Close()
	must(t, mount.Kernel{}.Bind(dir, filepath.Join(path, "mount"))) // as a Pod with Bidirectional propagation leaves it
	if err := s.Remove(handle, handle); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "u-1") {
		t.Errorf("while a pod uses it: %v", err)
	}
	must(t, s.files.Remove("u-1"))
	for range 2 {
		must(t, s.Remove(handle, handle))
		if names := left(t, s); len(names) > 0 {
			t.Errorf("left are %v", names)
		}
	}
	if data, err := os.ReadFile(precious); err != nil || string(data) != "x" {
		t.Errorf("what lies outside: %q, %v", data, err)
	}
	if mounts, err := s.mounts.Under(s.files.Dir); err != nil || len(mounts) > 0 {
		t.Errorf("mounts are left: %v, %v", mounts, err)
	}
	must(t, os.RemoveAll(s.files.Dir))
	must(t, s.Remove(handle, handle)) // one that was never created
}

// busy is a Mounts that fails to unmount.
type busy struct{ Mounts }

func (busy) Unmount(string) error { return unix.EBUSY }

// A mount that stays keeps its contents, and the removal is not complete.
func TestRemoveStopsAtAMount(t *testing.T) {
	s := newStore(t)
	path, outside := begin(t, s, "u-1"), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "precious"), nil, 0o600), os.Mkdir(filepath.Join(path, "mount"), 0o700))
	dir, err := os.Open(outside)
	must(t, err)
	defer dir.Close()
	must(t, mount.Kernel{}.Bind(dir, filepath.Join(path, "mount")), s.files.Remove("u-1"))
	stuck := NewStore(s.files, busy{s.mounts})
	if err := stuck.Remove(handle, handle); !errors.Is(err, unix.EBUSY) {
		t.Errorf("got %v", err)
	}
	must(t, s.Remove(handle, handle))
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil || len(left(t, s)) > 0 {
		t.Errorf("%v, left %v", err, left(t, s))
	}
}

// An agent that is killed at any step of removing carries on from there, and one that starts finishes half-created
// and half-removed folders.
func TestRemoveFailpoints(t *testing.T) {
	for _, point := range []string{"nodeagent/localvolume.remove.before", "nodeagent/localvolume.remove.after"} {
		s := newStore(t)
		path := begin(t, s, "u-1")
		must(t, os.WriteFile(filepath.Join(path, "work"), nil, 0o600), s.files.Remove("u-1"), failpoint.Arm(point,
			"1*error(killed)"))
		err := s.Remove(handle, handle)
		failpoint.Disarm(point)
		if !errors.Is(err, failpoint.ErrInjected) {
			t.Errorf("%s was not passed: %v", point, err)
		}
		next := NewStore(s.files, s.mounts)
		must(t, next.Remove(handle, handle))
		if names := left(t, s); len(names) > 0 {
			t.Errorf("%s: left are %v", point, names)
		}
	}
	s := newStore(t)
	path := begin(t, s, "u-1")
	must(t, os.MkdirAll(s.Path(".new-1"), 0o700), os.MkdirAll(s.Path(".removing-pvc-x/a"), 0o700))
	must(t, s.Sweep(), s.Sweep())
	want := []string{"local-volumes/" + handle, "local-volumes-made/" + handle}
	if names := left(t, s); !slices.Equal(names, want) {
		t.Errorf("left are %v, want %v; %s", names, want, path)
	}
}

// What a Pod uses is known after a restart, and an unreadable record is written again.
func TestBegun(t *testing.T) {
	s := newStore(t)
	if use, err := s.Begun("u-1", "data"); use != nil || err != nil {
		t.Errorf("before: %v, %v", use, err)
	}
	begin(t, s, "u-1")
	next := NewStore(s.files, s.mounts)
	use, err := next.Begun("u-1", "data")
	if err != nil || use == nil || use.Volume != handle || use.Ready {
		t.Fatalf("after: %+v, %v", use, err)
	}
	use.Ready = true
	must(t, next.Note("u-1", "data", *use))
	if use, err := s.Begun("u-1", "data"); err != nil || !use.Ready {
		t.Errorf("finished: %+v, %v", use, err)
	}
	must(t, os.WriteFile(s.files.Volume("u-1", "persistentVolumeClaim", "data"), []byte("{"), 0o600))
	if use, err := s.Begun("u-1", "data"); use != nil || err != nil {
		t.Errorf("damaged: %+v, %v", use, err)
	}
	if err := s.Remove(handle, handle); err == nil {
		t.Error("removed although it is not known what a Pod uses")
	}
}
