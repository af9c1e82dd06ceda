package subpath

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
	"keelson.dev/services/nodeagent/internal/volume/mount"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// tree creates a volume with contents beside something that must not be reached.
func tree(t *testing.T) (root, outside string) {
	base := t.TempDir()
	root, outside = filepath.Join(base, "volume"), filepath.Join(base, "outside")
	for _, dir := range []string{filepath.Join(root, "dir/inner"), outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{filepath.Join(root, "file"): "inside",
		filepath.Join(outside, "secret"): "outside"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"good": "dir/inner", "up": "..", "out": "../outside",
		"absolute": outside, "loop": "loop", "dangling": "nowhere", "dir/back": "../file"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root, outside
}

// POD-057, POD-189: parts of a volume are reached, and nothing outside it, however containers have set links.
func TestBindStaysInside(t *testing.T) {
	root, outside := tree(t)
	for path, want := range map[string]string{
		"file": "file", "dir": "dir", "dir/": "dir", "dir/inner": "dir/inner", "good": "dir/inner", "dir/back": "file",
		"new/deep": "new/deep", ".": ".",
		"up": "", "out": "", "absolute": "", "out/secret": "", "loop": "", "dangling": "", "dangling/x": "", "..": "",
		"../outside": "", "/etc": "", "dir/../../outside": "", "out/new": "", "file/x": "",
	} {
		mounter, target := &mountfake.Mounter{}, filepath.Join(t.TempDir(), "c", "0")
		err := Bind(mounter, root, path, target)
		if want == "" {
			if err == nil {
				t.Errorf("%s was bound: %v", path, mounter.Mounts())
			}
			continue
		}
		if err != nil || len(mounter.Mounts()) != 1 || mounter.Mounts()[0].Source != filepath.Join(root, want) {
			t.Errorf("%s: %v, %v", path, mounter.Mounts(), err)
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("something was made outside: %v", entries)
	}
}

func TestMissingFoldersAreMadeLikeTheRoot(t *testing.T) {
	root, _ := tree(t)
	if err := os.Chmod(root, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Bind(&mountfake.Mounter{}, root, "a/b", filepath.Join(t.TempDir(), "0")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(root, "a/b")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// With the kernel's mounts: a restarted container gets what the path means now, a file or a folder, and only one
// mount.
func TestBindAnew(t *testing.T) {
	root, _ := tree(t)
	kernel, target := mount.Kernel{}, filepath.Join(t.TempDir(), "c", "0")
	t.Cleanup(func() {
		if err := kernel.Unmount(target); err != nil {
			t.Error(err)
		}
	})
	for _, text := range []string{"one", "two"} {
		path := filepath.Join(root, "file")
		if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		if err := Bind(kernel, root, "file", target); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(target); err != nil || string(data) != text {
			t.Errorf("%q, %v; want %q", data, err, text)
		}
	}
	if err := Bind(kernel, root, "dir", target); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(target, "inner")); err != nil {
		t.Error(err)
	}
	if mounts, err := kernel.Under(filepath.Dir(target)); err != nil || len(mounts) != 1 {
		t.Errorf("%v, %v", mounts, err)
	}
}

// FuzzBind never binds anything outside, for any path.
func FuzzBind(f *testing.F) {
	for _, seed := range []string{"file", "out/secret", "up/outside", "./dir/../file", "good/../../x", "a\x00b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		root, _ := tree(t)
		mounter := &mountfake.Mounter{}
		if err := Bind(mounter, root, path, filepath.Join(t.TempDir(), "0")); err != nil {
			return
		}
		if source := mounter.Mounts()[0].Source; source != root && !strings.HasPrefix(source, root+"/") {
			t.Errorf("%q is bound for %q", source, path)
		}
	})
}

// A hostPath may be anything: a part of what is no folder is refused without opening it.
func TestBindOfNoFolder(t *testing.T) {
	for name, lay := range plainfiletest.Traps {
		path := filepath.Join(t.TempDir(), "volume")
		lay(t, path)
		err := Bind(&mountfake.Mounter{}, path, "part", filepath.Join(t.TempDir(), "target"))
		if (err == nil) != (name == "directory") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
