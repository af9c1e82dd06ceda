package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

func arm(t *testing.T, name, program string) {
	t.Helper()
	if err := failpoint.Arm(name, program); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { failpoint.Disarm(name) })
}

func copyStore(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	must(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// listing is the names and sizes of a store's files.
func listing(t *testing.T, p storedir.Paths) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(p.Store, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			fmt.Fprintf(&all, "%s %d\n", path, info.Size())
		}
		return err
	})
	must(t, err)
	return all.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) { t.Helper(); must(t, os.RemoveAll(path)) }
func mkdir(t *testing.T, path string)  { t.Helper(); must(t, os.MkdirAll(path, 0o700)) }
func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}
func chmod(t *testing.T, path string, to os.FileMode) { t.Helper(); must(t, os.Chmod(path, to)) }

// truncate keeps a part of the file.
func truncate(t *testing.T, path string, part float64) {
	t.Helper()
	must(t, os.Truncate(path, int64(float64(size(t, path))*part)))
}

// scribble overwrites the file between two parts of it.
func scribble(t *testing.T, path string, from, to float64) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	for i := int(float64(len(data)) * from); i < int(float64(len(data))*to); i++ {
		data[i] = byte(i*7 + 3)
	}
	must(t, os.WriteFile(path, data, 0o600))
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}

// emptyDatabase is what the first start has made when it ends before the log is there.
func emptyDatabase(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Close())
}

// openToAll lets everybody read what is below root.
func openToAll(t *testing.T, root string) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755)
	}))
	for dir := filepath.Dir(root); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		chmod(t, dir, 0o755)
	}
}

// asNobody runs do on a thread that has an ordinary user's rights to files. The thread ends with it.
func asNobody(do func() error) error {
	const nobody = 65534
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
		result <- do()
	}()
	return <-result
}

// tear leaves the beginning of a record behind the last one, as a crash in the middle of a write does.
func tear(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	const word = 8
	end := (len(bytes.TrimRight(data, "\x00")) + word - 1) / word * word
	binary.LittleEndian.PutUint64(data[end:], 2000)
	copy(data[end+word:], "torn")
	must(t, os.WriteFile(path, data, 0o600))
}
