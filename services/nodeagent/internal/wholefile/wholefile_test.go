package wholefile

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// writing is set for the process that TestWriterIsKilled kills: the file that it writes repeatedly.
const writing = "WHOLEFILE_TEST_WRITES"

func TestMain(m *testing.M) {
	if file := os.Getenv(writing); file != "" {
		for i := 0; ; i++ {
			if err := Write(file, content(i), 0o600); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

// content returns a large number of identical lines.
func content(i int) []byte { return bytes.Repeat([]byte(strconv.Itoa(i%10)+"\n"), 1<<16) }

// TestWriterIsKilled kills a process that writes a file, at many moments. The file always has one complete content, and
// after Clear nothing else is left, neither there nor in the folder of temporary files.
//
// SAF-197 POD-067
func TestWriterIsKilled(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "record.json")
	unfinished := 0
	for i := range 40 {
		writer := exec.CommandContext(t.Context(), os.Args[0])
		writer.Env = append(os.Environ(), writing+"="+file, "TMPDIR="+temp)
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
			<-time.After(time.Millisecond)
		}
		<-time.After(20*time.Millisecond + time.Duration(i)*time.Millisecond/2) // somewhere in a write
		if err := writer.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = writer.Wait() // it was killed
		data, err := os.ReadFile(file)
		if err != nil || len(data) != len(content(0)) || !bytes.Equal(data, bytes.Repeat(data[:2], 1<<16)) {
			t.Fatalf("%d bytes that are no whole content, error %v", len(data), err)
		}
		unfinished += len(names(t, dir)) - 1
		if err := Clear(dir, "*.json"); err != nil {
			t.Fatal(err)
		}
		if left := slices.Concat(names(t, dir), names(t, temp)); !slices.Equal(left, []string{"record.json"}) {
			t.Fatalf("there are %v", left)
		}
	}
	if unfinished == 0 {
		t.Error("no write was cut off: this test has seen nothing")
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, entry := range entries {
		out = append(out, entry.Name())
	}
	return out
}

// A write to a full disk changes nothing and leaves nothing.
//
// POD-067
func TestDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("a small disk, which needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(dir, "record.json")
	if err := Write(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, content(0), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("writing more than there is room: %v", err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "old" {
		t.Errorf("it holds %q, error %v", data, err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
	if err := Write(file, []byte("new"), 0o600); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// Clear removes only regular files under the names that Write uses.
func TestClear(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{"a.json", ".a.json1234567", ".b.json0", ".c.json", ".d.json12x", "e.json12",
		".f.conf12", ".12", "..g.json1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, make := range map[string]func(string) error{
		".x.json1": func(path string) error { return os.Mkdir(path, 0o700) },
		".y.json1": func(path string) error { return unix.Mkfifo(path, 0o600) },
		".z.json1": func(path string) error { return os.Symlink(outside, path) },
	} {
		if err := make(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Clear(dir, "?.json"); err != nil {
		t.Fatal(err)
	}
	want := []string{"..g.json1", ".12", ".c.json", ".d.json12x", ".f.conf12", ".x.json1", ".y.json1", ".z.json1",
		"a.json", "e.json12"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	if err := Clear(filepath.Join(dir, "nothing"), "*"); err != nil {
		t.Errorf("of a folder that is not there: %v", err)
	}
	if err := Clear(filepath.Join(dir, "a.json"), "*"); err == nil {
		t.Error("no error about a folder that is none")
	}
}
