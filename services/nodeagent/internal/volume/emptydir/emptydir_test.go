package emptydir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/downward"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// asked is a volume of a Pod that is to be in dir.
func asked(dir string, medium corev1.StorageMedium, change ...func(*corev1.Pod)) volume.Request {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{limited("hugepages-2Mi", "8Mi")}}}
	for _, c := range change {
		c(pod)
	}
	return volume.Request{View: downward.View{Pod: pod}, Dir: dir, Allocatable: amounts("memory", "1Gi"),
		Volume: &corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}}
}

func ownedBy(group int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To(group)} }
}

// narrowUmask sets a umask that would take permissions of other users' containers from a new folder.
func narrowUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(old) })
}

// POD-057: every user may write to the folder; if the Pod has a group, the folder and its new entries get that
// group.
func TestModeAndGroup(t *testing.T) {
	narrowUmask(t)
	for name, row := range map[string]struct {
		change []func(*corev1.Pod)
		mode   fs.FileMode
		gid    uint32
	}{
		"no group":      {nil, fs.ModeDir | 0o777, uint32(os.Getegid())},
		"a group":       {[]func(*corev1.Pod){ownedBy(2345)}, fs.ModeDir | fs.ModeSetgid | 0o777, 2345},
		"root's group":  {[]func(*corev1.Pod){ownedBy(0)}, fs.ModeDir | fs.ModeSetgid | 0o777, 0},
		"another group": {[]func(*corev1.Pod){ownedBy(1)}, fs.ModeDir | fs.ModeSetgid | 0o777, 1},
	} {
		dir := filepath.Join(t.TempDir(), "v")
		result, err := Kind{}.SetUp(t.Context(), asked(dir, "", row.change...))
		if err != nil || result != (volume.Result{Path: dir, Own: true}) {
			t.Errorf("%s: %+v, %v", name, result, err)
			continue
		}
		info, err := os.Lstat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t); info.Mode() != row.mode || got.Gid != row.gid {
			t.Errorf("%s: mode %v and group %d, want %v and %d", name, info.Mode(), got.Gid, row.mode, row.gid)
		}
		if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
			t.Errorf("%s: beside the volume lies %v, %v", name, entries, err)
		}
	}
}

// POD-205: an existing volume belongs to the containers: its contents, mode and group are left unchanged, and a
// link that replaces it is not followed.
func TestWhatStandsIsLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 0, 7), os.WriteFile(filepath.Join(dir, "work"),
		[]byte("done"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := (Kind{}).SetUp(t.Context(), asked(dir, "", ownedBy(2345))); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode() != fs.ModeDir|0o700 || info.Sys().(*syscall.Stat_t).Gid != 7 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "work")); err != nil || string(text) != "done" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	elsewhere, link := filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "v")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	if _, err := (Kind{}).SetUp(t.Context(), asked(link, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(elsewhere); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was made behind a link: %v", err)
	}
	if target, err := os.Readlink(link); err != nil || target != elsewhere {
		t.Errorf("the link leads to %s, %v", target, err)
	}
}

func TestNoPlaceForTheFolder(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "none")
	_, err := Kind{}.SetUp(t.Context(), asked(filepath.Join(parent, "v"), ""))
	if err == nil || !strings.HasPrefix(err.Error(), "making the volume's folder: ") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(parent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of the Pod's volumes was made: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Kind{}).SetUp(t.Context(), asked(filepath.Join(file, "v"), "")); err == nil {
		t.Error("a folder inside a file was made")
	}
}

// File systems in memory and huge pages have the size, mode and group that the Pod specifies, are mounted once, and
// are never a folder on the disk.
func TestMounts(t *testing.T) {
	for name, row := range map[string]struct {
		medium corev1.StorageMedium
		change []func(*corev1.Pod)
		want   mountfake.Mount
	}{
		"memory": {"Memory", nil, mountfake.Mount{Kind: "tmpfs", Options: "size=1073741824 mode=777 gid=-1"}},
		"memory of a group": {"Memory", []func(*corev1.Pod){ownedBy(2345)}, mountfake.Mount{Kind: "tmpfs",
			Options: "size=1073741824 mode=2777 gid=2345"}},
		"huge pages": {"HugePages", nil, mountfake.Mount{Kind: "hugetlbfs",
			Options: "pagesize=2097152 size=8388608 mode=777 gid=-1"}},
		"huge pages of root's group": {"HugePages-2Mi", []func(*corev1.Pod){ownedBy(0)}, mountfake.Mount{
			Kind: "hugetlbfs", Options: "pagesize=2097152 size=8388608 mode=2777 gid=0"}},
	} {
		fake, dir := &mountfake.Mounter{}, filepath.Join(t.TempDir(), "v")
		for range 2 {
			result, err := Kind{Mounter: fake}.SetUp(t.Context(), asked(dir, row.medium, row.change...))
			if err != nil || result != (volume.Result{Path: dir, Own: true}) {
				t.Errorf("%s: %+v, %v", name, result, err)
			}
		}
		row.want.Target = dir
		if got := fake.Mounts(); len(got) != 1 || got[0] != row.want {
			t.Errorf("%s: mounted %+v, want %+v once", name, got, row.want)
		}
	}
}

// A volume that cannot be mounted fails: containers never get the folder below it, which is on the node's disk.
func TestMountsThatFail(t *testing.T) {
	broken := errors.New("no memory")
	for name, row := range map[string]struct {
		medium corev1.StorageMedium
		fail   error
		want   string
	}{
		"memory":               {"Memory", broken, "no memory"},
		"huge pages":           {"HugePages", broken, "no memory"},
		"an unknown medium":    {"Tape", nil, `unknown storage medium "Tape"`},
		"pages nobody may use": {"HugePages-1Gi", nil, "needs a container that asks for pages"},
	} {
		fake, dir := &mountfake.Mounter{}, filepath.Join(t.TempDir(), "v")
		fake.Fail(dir, row.fail)
		_, err := Kind{Mounter: fake}.SetUp(t.Context(), asked(dir, row.medium))
		if err == nil || !strings.Contains(err.Error(), row.want) || len(fake.Mounts()) != 0 {
			t.Errorf("%s: %v, want %q; mounted %v", name, err, row.want, fake.Mounts())
		}
	}
}

func TestHandles(t *testing.T) {
	if !(Kind{}).Handles(asked("", "Tape").Volume) {
		t.Error("an emptyDir of any medium is this kind's to answer")
	}
	if (Kind{}).Handles(&corev1.Volume{Name: "v"}) || (Kind{}).Name() != "emptyDir" {
		t.Error("what says nothing is no emptyDir")
	}
}
