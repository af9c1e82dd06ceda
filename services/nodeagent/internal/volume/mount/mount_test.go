package mount

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

func folder(t *testing.T, elements ...string) string {
	t.Helper()
	dir := filepath.Join(elements...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The kernel and the fake give the same answers.
func TestMounters(t *testing.T) {
	for name, mounter := range map[string]volume.Mounter{"kernel": Kernel{}, "fake": &mountfake.Mounter{}} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			outer, bound := folder(t, base, "outer"), folder(t, base, "bound")
			t.Cleanup(func() { unmountAll(t, mounter, base) })
			if mounted, err := mounter.IsMount(outer); mounted || err != nil {
				t.Fatalf("before: %v, %v", mounted, err)
			}
			if err := mounter.Tmpfs(outer, 1<<20, 0o2770, 4321); err != nil {
				t.Fatal(err)
			}
			inner := folder(t, outer, "inner")
			source, err := os.Open(outer)
			if err != nil {
				t.Fatal(err)
			}
			for _, target := range []string{inner, bound, bound} {
				if err := mounter.Bind(source, target); err != nil {
					t.Fatal(err)
				}
			}
			source.Close()
			if mounted, err := mounter.IsMount(inner); !mounted || err != nil {
				t.Errorf("inner: %v, %v", mounted, err)
			}
			if got, err := mounter.Under(base); err != nil || !slices.Equal(got, []string{inner, bound, bound, outer}) {
				t.Errorf("Under = %v, %v", got, err)
			}
			if err := os.Symlink(base, filepath.Join(base, "link")); err != nil {
				t.Fatal(err)
			}
			if got, err := mounter.Under(filepath.Join(base, "link")); err != nil || len(got) != 0 {
				t.Errorf("behind a link: %v, %v", got, err)
			}
			if got, err := mounter.Under(folder(t, base, "bo")); err != nil || len(got) != 0 {
				t.Errorf("a folder whose name begins alike: %v, %v", got, err)
			}
			if err := mounter.Unmount(bound); err != nil {
				t.Fatal(err)
			}
			if got, _ := mounter.Under(bound); len(got) != 1 {
				t.Errorf("one of two is gone: %v", got)
			}
			unmountAll(t, mounter, base)
			for _, target := range []string{outer, filepath.Join(base, "none")} {
				if err := mounter.Unmount(target); err != nil {
					t.Errorf("no mount at %s: %v", target, err)
				}
				if mounted, err := mounter.IsMount(target); mounted || err != nil {
					t.Errorf("%s: %v, %v", target, mounted, err)
				}
			}
		})
	}
}

func unmountAll(t *testing.T, mounter volume.Mounter, dir string) {
	t.Helper()
	targets, err := mounter.Under(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		if err := mounter.Unmount(target); err != nil {
			t.Error(err)
		}
	}
	if left, err := mounter.Under(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A block device is one itself, not through a link, and nothing else is.
func TestIsDevice(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		unix.Mknod(at("block"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))),
		unix.Mknod(at("character"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))),
		os.Symlink(at("block"), at("link")), os.WriteFile(at("file"), nil, 0o600), os.Mkdir(at("folder"), 0o700),
		os.WriteFile(at("bound"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(at("block"), at("bound"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unmountAll(t, Kernel{}, dir) })
	for name, want := range map[string]bool{"block": true, "bound": true, "character": false, "link": false,
		"file": false, "folder": false, "none": false} {
		if got, err := (Kernel{}).IsDevice(at(name)); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	fake := &mountfake.Mounter{}
	if err := fake.Device(at("file")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"file": true, "folder": false} {
		if got, err := fake.IsDevice(at(name)); got != want || err != nil {
			t.Errorf("the fake, %s: %v, %v", name, got, err)
		}
	}
}

// A file system in memory has the requested size, mode and group.
func TestTmpfsOptions(t *testing.T) {
	dir := folder(t, t.TempDir(), "memory")
	if err := (Kernel{}).Tmpfs(dir, 1<<20, 0o2770, 4321); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unmountAll(t, Kernel{}, dir) })
	var stat unix.Stat_t
	var fs unix.Statfs_t
	if err := unix.Stat(dir, &stat); err != nil || stat.Mode&0o7777 != 0o2770 || stat.Gid != 4321 {
		t.Errorf("mode %o, group %d, %v", stat.Mode, stat.Gid, err)
	}
	if err := unix.Statfs(dir, &fs); err != nil || int64(fs.Blocks)*fs.Bsize != 1<<20 {
		t.Errorf("size %d, %v", int64(fs.Blocks)*fs.Bsize, err)
	}
}

// A file system in memory is not swapped out if the kernel has an option for that.
func TestTmpfsIsNotSwapped(t *testing.T) {
	base := t.TempDir()
	probe, dir := folder(t, base, "probe"), folder(t, base, "memory")
	t.Cleanup(func() { unmountAll(t, Kernel{}, base) })
	can := unix.Mount("tmpfs", probe, "tmpfs", 0, "noswap") == nil
	if err := (Kernel{}).Tmpfs(dir, 0, 0o755, -1); err != nil {
		t.Fatal(err)
	}
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(dir))
	if err != nil || len(mounts) != 1 {
		t.Fatalf("mounts %v, %v", mounts, err)
	}
	if got := slices.Contains(strings.Split(mounts[0].VFSOptions, ","), "noswap"); got != can {
		t.Errorf("options %s, but whether the kernel can is %v", mounts[0].VFSOptions, can)
	}
}
