package steps

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
	"keelson.dev/services/nodeagent/internal/podenv"
)

// If a container replaces the file by something else, nothing outside the volume is read, nothing blocks, and the
// error does not reveal where the node keeps the volume.
func TestReadEnvironment(t *testing.T) {
	volume := t.TempDir()
	if err := os.Mkdir(filepath.Join(volume, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"sub/env": 3, "most": podenv.MaxSize, "more": podenv.MaxSize + 1} {
		if err := os.WriteFile(filepath.Join(volume, name), []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := readEnvironment(volume, name)
		if fits := size <= podenv.MaxSize; (err == nil) != fits || fits && len(text) != size {
			t.Errorf("of %d bytes %d are read: %v", size, len(text), err)
		}
	}
	if _, err := readEnvironment(volume, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	refused := func(t *testing.T, volume, file string) {
		t.Helper()
		if text, err := readEnvironment(volume, file); err == nil || errors.Is(err, fs.ErrNotExist) ||
			strings.Contains(err.Error(), volume) {
			t.Errorf("read %q: %v", text, err)
		}
	}
	if err := os.Symlink("sub", filepath.Join(volume, "link")); err != nil {
		t.Fatal(err)
	}
	refused(t, volume, "link/env")
	for name, lay := range plainfiletest.Traps {
		t.Run(name, func(t *testing.T) {
			volume := t.TempDir()
			lay(t, filepath.Join(volume, "env"))
			refused(t, volume, "env")
		})
	}
}
