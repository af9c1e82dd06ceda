package mount

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

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
