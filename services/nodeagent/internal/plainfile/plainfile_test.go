package plainfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOnlyPlainFilesAreOpened(t *testing.T) {
	for name, lay := range plainfiletest.Traps {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			lay(t, path)
			for _, flag := range []int{os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_CREATE} {
				if file, err := Root(dir).OpenFile(path, flag, 0o600); !errors.Is(err, ErrNotPlain) {
					t.Errorf("flags %#x: %v, %v", flag, file, err)
				}
			}
			if text, err := os.ReadFile(path + ".other"); err == nil && string(text) != plainfiletest.Secret {
				t.Errorf("the other file holds %q", text)
			}
		})
	}
}

// A link that replaces a folder on the way is not followed.
func TestNoLinkOnTheWay(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "real", "sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "real", "sub", "f"), []byte("x"), 0o600))
	must(t, os.Symlink("real", filepath.Join(dir, "link")))
	for path, plain := range map[string]bool{"real/sub/f": true, "link/sub/f": false} {
		file, err := Root(dir).Open(filepath.Join(dir, path))
		if plain != (err == nil) || !plain && !errors.Is(err, ErrNotPlain) {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			file.Close()
		}
		if folder, err := Root(dir).Folder(filepath.Join(dir, filepath.Dir(path))); plain != (err == nil) {
			t.Errorf("folder of %s: %v", path, err)
		} else if err == nil {
			folder.Close()
		}
	}
	if _, err := Root(filepath.Join(dir, "real")).Open(filepath.Join(dir, "link", "sub", "f")); err == nil {
		t.Error("a path outside of the root was opened")
	}
	if _, err := Root(filepath.Join(dir, "link")).Open(filepath.Join(dir, "link", "sub", "f")); err != nil {
		t.Errorf("the root itself may be a link: %v", err)
	}
}

func TestPlainFiles(t *testing.T) {
	root := Root(t.TempDir())
	path := filepath.Join(string(root), "f")
	if _, err := root.Open(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	file, err := root.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o640)
	must(t, err)
	_, err = file.WriteString("one")
	must(t, errors.Join(err, file.Close()))
	again, err := root.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	must(t, err)
	defer again.Close()
	text, err := io.ReadAll(again)
	info, _ := again.Stat()
	if string(text) != "one" || err != nil || info.Mode() != 0o640 {
		t.Errorf("%q, %v, %v", text, err, info.Mode())
	}
}
