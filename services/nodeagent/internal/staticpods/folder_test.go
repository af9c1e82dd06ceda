package staticpods

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// With anything in the folder, reading it ends, touches no device and reports for each entry why it is not read.
func TestReadFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, at("a.yaml"), "pod")
	put(t, at(".hidden.yaml"), "pod")
	put(t, at("largest"), strings.Repeat("x", 1<<20))
	put(t, at("too-large"), strings.Repeat("x", 1<<20+1))
	put(t, filepath.Join(outside, "linked"), "elsewhere")
	for name, err := range map[string]error{
		"fifo":   unix.Mkfifo(at("fifo"), 0o600),
		"folder": os.Mkdir(at("folder"), 0o700),
		"link":   os.Symlink(filepath.Join(outside, "linked"), at("link")),
		"broken": os.Symlink(filepath.Join(outside, "nothing"), at("broken")),
		"loop":   os.Symlink("loop", at("loop")),
		"null":   os.Symlink("/dev/zero", at("null")),
	} {
		if err != nil {
			t.Fatal(name, err)
		}
	}
	files, err := readFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		problem, _, _ := strings.Cut(strings.TrimPrefix(f.Problem, "it cannot be read: "), at(""))
		got = append(got, fmt.Sprintf("%s %d %s", f.Name, len(f.Data), problem))
	}
	want := []string{"a.yaml 3 ", "broken 0 stat ", "fifo 0 it is no regular file but prw-------",
		"folder 0 it is no regular file but drwx------", "largest 1048576 ", "link 9 ", "loop 0 stat ",
		"null 0 it is no regular file but Dcrw-rw-rw-", "too-large 0 it has more than 1048576 bytes"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if one, err := readFolder(at("a.yaml")); err != nil || len(one) != 1 || string(one[0].Data) != "pod" {
		t.Errorf("one file instead of a folder: %v, %v", one, err)
	}
	if none, err := readFolder(at("missing")); err != nil || len(none) != 0 {
		t.Errorf("a folder that is not there: %v, %v", none, err)
	}
	if _, err := readFolder(filepath.Join(at("a.yaml"), "below")); err == nil {
		t.Error("nothing is known about the files, and nothing says so")
	}
}

// The number of files is bounded, and the first one beyond it gets an error.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 1002 {
		put(t, filepath.Join(dir, fmt.Sprintf("%04d", i)), "x")
	}
	files, err := readFolder(dir)
	if err != nil || len(files) != 1001 || files[999].Problem != "" || files[1000].Name != "1000" ||
		files[1000].Problem == "" {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// A change is noticed long before the periodic scan, and a file written in pieces is read once, when it is
// complete.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	sizes, ended := make(chan int, 100), make(chan struct{})
	path := filepath.Join(dir, "a")
	go func() {
		defer close(ended)
		watch(ctx, dir, zap.NewNop(), func() {
			data, _ := os.ReadFile(path)
			sizes <- len(data)
		})
	}()
	if first := <-sizes; first != 0 {
		t.Fatalf("at first %d bytes", first)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := file.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case size := <-sizes:
		if size != 5 {
			t.Errorf("looked at %d of 5 bytes", size)
		}
	case <-time.After(rescan / 2):
		t.Error("a change was not noticed")
	}
	cancel()
	<-ended
}
