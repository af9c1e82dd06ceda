package kinds_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/volume/mount"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// POD-032, POD-057, POD-058, POD-059, POD-205: containers share an emptyDir, it stays as they leave it while its
// Pod lives, and it is removed with the Pod.
func TestEmptyDir(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](2345)}
	r.add("disk", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	r.add("memory", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory,
		SizeLimit: ptr.To(resource.MustParse("1Mi"))}})
	volumes := r.setUp(t)
	for name, volume := range volumes {
		info, err := os.Stat(volume.Path)
		if err != nil || info.Mode().Perm() != 0o777 || info.Mode()&fs.ModeSetgid == 0 ||
			info.Sys().(*syscall.Stat_t).Gid != 2345 || volume.ReadOnly {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(volume.Path, "work"), []byte("done"), 0o644),
			os.Chmod(volume.Path, 0o711)); err != nil {
			t.Fatal(err)
		}
	}
	again := r.setUp(t) // a restarted nodeagent, or a restarted container
	for name, volume := range again {
		wantFile(t, volume.Path, "work", "done")
		if info, _ := os.Stat(volume.Path); info.Mode().Perm() != 0o711 {
			t.Errorf("%s: the container's mode was changed to %v", name, info.Mode())
		}
	}
	var memory syscall.Statfs_t
	if err := syscall.Statfs(volumes["memory"].Path, &memory); err != nil ||
		int64(memory.Blocks)*memory.Bsize != 1<<20 {
		t.Errorf("size of memory: %d, %v", int64(memory.Blocks)*memory.Bsize, err)
	}
	if err := r.TearDown(t.Context(), r.pod.UID); err != nil {
		t.Fatal(err)
	}
	if err := r.root.Make(r.pod); err != nil {
		t.Fatal(err)
	}
	for name, volume := range r.setUp(t) {
		if entries, err := os.ReadDir(volume.Path); err != nil || len(entries) != 0 {
			t.Errorf("%s of the next Pod holds %v, %v", name, entries, err)
		}
	}
}

func TestEmptyDirErrors(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.add("odd", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Tape"}})
	r.add("huge", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumHugePages}})
	r.add("fine", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	volumes, err := r.trySetUp(t)
	if err == nil || len(volumes) != 1 {
		t.Fatalf("%v, %v", volumes, err)
	}
	for _, want := range []string{
		`MountVolume.SetUp failed for volume "odd" : unknown storage medium "Tape": use "", Memory, HugePages or HugePages-<size>`,
		`MountVolume.SetUp failed for volume "huge" : medium HugePages needs containers that ask for pages of exactly one size, found 0 sizes`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func TestHugePages(t *testing.T) {
	fake := &mountfake.Mounter{}
	r := newRig(t, fake)
	r.pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("8Mi")}
	r.add("one", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumHugePages}})
	r.add("two", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "HugePages-2Mi"}})
	r.setUp(t)
	for _, m := range fake.Mounts() {
		if m.Kind != "hugetlbfs" || m.Options != "pagesize=2097152 size=8388608 mode=777 gid=-1" {
			t.Errorf("%+v", m)
		}
	}
	if len(fake.Mounts()) != 2 {
		t.Errorf("%v", fake.Mounts())
	}
}

// A volume in memory is no larger than what its Pod may use.
func TestMemorySize(t *testing.T) {
	for limit, want := range map[string]string{"": "size=1073741824", "64Mi": "size=67108864",
		"8Gi": "size=1073741824"} {
		fake := &mountfake.Mounter{}
		r := newRig(t, fake)
		if limit != "" {
			r.pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(
				limit)}
		}
		r.add("m", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
		r.setUp(t)
		if got := fake.Mounts()[0].Options; !strings.HasPrefix(got, want+" ") {
			t.Errorf("limit %q: %s", limit, got)
		}
	}
}

func TestHostPath(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mknod(filepath.Join(base, "socket"), syscall.S_IFSOCK|0o600, 0); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		path  string
		kind  corev1.HostPathType
		error string
	}{
		{base, corev1.HostPathUnset, ""},
		{base + "/none", corev1.HostPathUnset, ""},
		{base, corev1.HostPathDirectory, ""},
		{file, corev1.HostPathDirectory, "is not a directory"},
		{base + "/none", corev1.HostPathDirectory, "is not a directory"},
		{base + "/new/dir", corev1.HostPathDirectoryOrCreate, ""},
		{file, corev1.HostPathDirectoryOrCreate, "is not a directory"},
		{file, corev1.HostPathFile, ""},
		{base, corev1.HostPathFile, "is not a file"},
		{base + "/newfile", corev1.HostPathFileOrCreate, ""},
		{base + "/no/parent", corev1.HostPathFileOrCreate, "no such file or directory"},
		{base + "/socket", corev1.HostPathSocket, ""},
		{file, corev1.HostPathSocket, "is not a socket file"},
		{"/dev/null", corev1.HostPathCharDev, ""},
		{file, corev1.HostPathCharDev, "is not a character device"},
		{"/dev/null", corev1.HostPathBlockDev, "is not a block device"},
		{file, "Odd", "Odd is not a known type"},
	} {
		r := newRig(t, &mountfake.Mounter{})
		r.add("host", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: row.path, Type: &row.kind}})
		volumes, err := r.trySetUp(t)
		if row.error == "" && (err != nil || volumes["host"].Path != row.path || volumes["host"].ReadOnly) {
			t.Errorf("%s as %q: %v, %v", row.path, row.kind, volumes, err)
		}
		if row.error != "" && (err == nil || !strings.HasSuffix(err.Error(), row.error) ||
			!strings.Contains(err.Error(), "hostPath type check failed: ")) {
			t.Errorf("%s as %q: %v", row.path, row.kind, err)
		}
	}
	for _, made := range []string{"new/dir", "newfile", "file", "socket"} {
		if _, err := os.Lstat(filepath.Join(base, made)); err != nil {
			t.Errorf("taking a Pod down took %s away: %v", made, err)
		}
	}
}
