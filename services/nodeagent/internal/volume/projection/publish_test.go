package projection

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/downward"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/atomicdir"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// asked is a volume that is to be in dir; a group below 0 means none.
func asked(dir string, group int64) volume.Request {
	pod := &corev1.Pod{}
	if group >= 0 {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To(group)}
	}
	return volume.Request{View: downward.View{Pod: pod}, Dir: dir}
}

func publish(t *testing.T, mounter volume.Mounter, dir string, group int64, files atomicdir.Files) {
	t.Helper()
	result, err := Publish(mounter, asked(dir, group), files)
	if err != nil || result != (volume.Result{Path: dir, ReadOnly: true, Own: true}) {
		t.Fatalf("%+v, %v: containers must not write to it", result, err)
	}
}

func wantText(t *testing.T, path, want string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), text, err, want)
	}
}

// Regardless of the agent's umask, files have the requested mode and, apart from that, only the Pod's group, if it
// has one, may read them.
func TestModes(t *testing.T) {
	old := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(old) })
	files := atomicdir.Files{"open": file("o", 0o644), "script": file("s", 0o755), "deep/secret": file("d", 0o400),
		"closed": file("c", 0)}
	for group, want := range map[int64]map[string]fs.FileMode{
		-1: {"open": 0o644, "script": 0o755, "deep/secret": 0o400, "closed": 0, "deep": fs.ModeDir | 0o755},
		2345: {"open": 0o644, "script": 0o755, "deep/secret": 0o440, "closed": 0o440,
			"deep": fs.ModeDir | fs.ModeSetgid | 0o775},
	} {
		dir := filepath.Join(t.TempDir(), "v")
		publish(t, nil, dir, group, files)
		for name, mode := range want {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			gid := info.Sys().(*syscall.Stat_t).Gid
			if info.Mode() != mode || group >= 0 && int64(gid) != group || group < 0 && int(gid) != os.Getegid() {
				t.Errorf("group %d: %s is %v of group %d, want %v", group, name, info.Mode(), gid, mode)
			}
		}
	}
}

// SAF-120: a container sees all files of the volume change in one step, the switch of one link; it can read open
// files to the end; and an update that is refused changes nothing.
func TestUpdateIsOneSwitch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	publish(t, nil, dir, -1, atomicdir.Files{"a": file("1", 0o644), "gone": file("1", 0o644)})
	first, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "gone"} {
		if target, err := os.Readlink(filepath.Join(dir, name)); err != nil || target != "..data/"+name {
			t.Errorf("%s leads to %s, %v: it must follow the switch", name, target, err)
		}
	}
	open, err := os.Open(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	publish(t, nil, dir, -1, atomicdir.Files{"a": file("2", 0o644), "new": file("2", 0o644)})
	second, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil || second == first {
		t.Errorf("the link still leads to %s, %v", second, err)
	}
	wantText(t, filepath.Join(dir, "a"), "2")
	wantText(t, filepath.Join(dir, "new"), "2")
	was := make([]byte, 8)
	if n, err := open.Read(was); err != nil || string(was[:n]) != "1" {
		t.Errorf("an open file changed under its reader: %q, %v", was[:n], err)
	}
	for _, name := range []string{"gone", first} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	for _, bad := range []string{"../x", "/x", "..data", "a/../../x"} {
		if _, err := Publish(nil, asked(dir, -1), atomicdir.Files{"a": file("3", 0o644), bad: {}}); err == nil {
			t.Errorf("a file %s was made", bad)
		}
	}
	wantText(t, filepath.Join(dir, "a"), "2")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 { // the two files, the link and its folder
		t.Errorf("the volume holds %v, %v", entries, err)
	}
	if beside, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(beside) != 1 {
		t.Errorf("beside the volume lies %v, %v", beside, err)
	}
}

// emptyAtMount records what is in a folder when memory is mounted over it.
type emptyAtMount struct {
	mountfake.Mounter
	below []os.DirEntry
}

func (m *emptyAtMount) Tmpfs(target string, size int64, mode uint32, gid int64) error {
	entries, err := os.ReadDir(target)
	m.below = append(m.below, entries...)
	return errors.Join(err, m.Mounter.Tmpfs(target, size, mode, gid))
}

// Secrets are written only once memory is mounted, which happens once, and not at all if mounting fails.
func TestSecretsLieInMemory(t *testing.T) {
	for group, options := range map[int64]string{
		-1: "size=0 mode=755 gid=-1", 0: "size=0 mode=2775 gid=0", 2345: "size=0 mode=2775 gid=2345",
	} {
		fake, dir := &emptyAtMount{}, filepath.Join(t.TempDir(), "v")
		for _, text := range []string{"hush", "hush again"} {
			publish(t, fake, dir, group, atomicdir.Files{"key": file(text, 0o400)})
			wantText(t, filepath.Join(dir, "key"), text)
		}
		want := []mountfake.Mount{{Target: dir, Kind: "tmpfs", Options: options}}
		if got := fake.Mounts(); !slices.Equal(got, want) || len(fake.below) != 0 {
			t.Errorf("mounted %+v over %v, want %+v over nothing", got, fake.below, want)
		}
	}
	broken, dir := &mountfake.Mounter{}, filepath.Join(t.TempDir(), "v")
	failure := errors.New("no memory")
	broken.Fail(dir, failure)
	if _, err := Publish(broken, asked(dir, -1), atomicdir.Files{"key": file("hush", 0o400)}); !errors.Is(err,
		failure) {
		t.Errorf("without memory: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("without memory the disk holds %v, %v", entries, err)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Publish(nil, asked(blocked, -1), nil); err == nil {
		t.Error("a file was taken for the volume's folder")
	}
}

// answers has one ConfigMap and one Secret, or fails.
type answers struct {
	volume.Sources
	err error
}

func (a answers) asked(namespace, name string) error {
	if got := namespace + "/" + name; got != "ns/there" {
		return fmt.Errorf("asked for %s", got)
	}
	return a.err
}

func (a answers) ConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"k": "v"}}, a.asked(namespace, name)
}

func (a answers) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"k": []byte("v")}}, a.asked(namespace, name)
}

// An optional object has no files while it is missing. A server that does not answer, or refuses, is another case:
// the existing files must stay.
func TestObjects(t *testing.T) {
	maybe := Keys{Optional: true, DefaultMode: 0o644}
	absent := apierrors.NewNotFound(corev1.Resource("objects"), "there")
	refused := apierrors.NewForbidden(corev1.Resource("objects"), "there", errors.New("no relationship"))
	for _, row := range []struct {
		name  string
		keys  Keys
		err   error
		files int
		wrong error
	}{
		{"there", Keys{DefaultMode: 0o644}, nil, 1, nil},
		{"there, and may be missing", maybe, nil, 1, nil},
		{"missing", Keys{}, absent, 0, absent},
		{"missing, and may be", maybe, absent, 0, nil},
		{"refused", Keys{}, refused, 0, refused},
		{"refused, and may be missing", maybe, refused, 0, refused},
	} {
		for kind, get := range map[string]func(context.Context, volume.Sources, string, string, Keys) (atomicdir.Files,
			error){"ConfigMap": ConfigMap, "Secret": Secret} {
			got, err := get(t.Context(), answers{err: row.err}, "ns", "there", row.keys)
			if len(got) != row.files || !errors.Is(err, row.wrong) || (err == nil) != (row.wrong == nil) {
				t.Errorf("%s %s: %v, %v; want %d files, %v", kind, row.name, got, err, row.files, row.wrong)
			}
			if row.files == 1 && (string(got["k"].Data) != "v" || got["k"].Mode != 0o644) {
				t.Errorf("%s %s: %v", kind, row.name, got)
			}
		}
	}
	other := Keys{Items: []corev1.KeyToPath{{Key: "other", Path: "o"}}}
	if _, err := ConfigMap(t.Context(), answers{}, "ns", "there", other); err == nil ||
		err.Error() != "configmap references non-existent config key: other" {
		t.Errorf("got %v", err)
	}
	if _, err := Secret(t.Context(), answers{}, "ns", "there", other); err == nil ||
		err.Error() != "references non-existent secret key: other" {
		t.Errorf("got %v", err)
	}
}
