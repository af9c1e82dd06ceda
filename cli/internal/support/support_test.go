package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/kit/subprocess"
)

var now = time.Date(2026, 11, 28, 5, 4, 3, 0, time.UTC)

// said is a source that answers so.
func said(name, content, note string, err error) source {
	return source{name, func(context.Context) ([]byte, string, error) { return []byte(content), note, err }}
}

// unpacked reads an archive.
func unpacked(t *testing.T, packed io.Reader) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Mode != 0o600 {
			t.Errorf("%s has mode %o", header.Name, header.Mode)
		}
		files[strings.TrimPrefix(header.Name, "keel-support/")] = string(content)
	}
}

// A bundle holds what could be read, and its index says of everything else why it is not there.
func TestBundle(t *testing.T) {
	var out bytes.Buffer
	summary, err := write(&out, gather(t.Context(), []source{
		said("b", "two", "the last 3 of 9 bytes", nil), said("a", "", "", errors.New("no such daemon")),
		said("c", "half", "", errors.New("broke off")), said("d", "", "", nil),
	}), now)
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{Files: 3, Missing: []string{"a: no such daemon", "c: broke off"}}
	if summary.Files != want.Files || !slices.Equal(summary.Missing, want.Missing) {
		t.Errorf("got %+v, want %+v", summary, want)
	}
	files := unpacked(t, &out)
	index := files["index.txt"]
	delete(files, "index.txt")
	if want := map[string]string{"b": "two", "c": "half", "d": ""}; !maps.Equal(files, want) {
		t.Errorf("it holds %v, want %v", files, want)
	}
	if want := `
Collected 2026-11-28T05:04:03Z.

         3  b  (the last 3 of 9 bytes)
         4  c
         0  d

Could not be collected:
  a: no such daemon
  c: broke off
`; !strings.HasSuffix(index, want) {
		t.Errorf("the index is\n%s", index)
	}
}

// A source that hangs costs its own answer and no other's, and the bundle no more time than one answer may take.
func TestSourcesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		sources := []source{said("a", "A", "", nil)}
		for i := range atOnce - 1 {
			sources = append(sources, source{fmt.Sprint(i), func(ctx context.Context) ([]byte, string, error) {
				<-ctx.Done()
				return nil, "", ctx.Err()
			}})
		}
		files := gather(t.Context(), append(sources, said("z", "Z", "", nil)))
		if took := time.Since(begun); took != askLimit {
			t.Errorf("it took %s, want %s", took, askLimit)
		}
		for i, f := range files {
			if hangs := i > 0 && i < atOnce; hangs != errors.Is(f.err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", f.name, f.err)
			}
		}
	})
}

// A log is read from its end, from the beginning of a line on.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, r := range []struct {
		content    string
		limit      int64
		text, note string
	}{
		{"", 4, "", ""},
		{"a\nb\n", 4, "a\nb\n", ""},
		{"a\nbc\nd\n", 6, "bc\nd\n", "the last 5 of 7 bytes"},
		{"a\nbc\nd\n", 5, "d\n", "the last 2 of 7 bytes"},
		{"abcdefgh", 4, "", "the last 0 of 8 bytes"},
	} {
		if err := os.WriteFile(path, []byte(r.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, note, err := tail(path, r.limit); text != r.text || note != r.note || err != nil {
			t.Errorf("the last %d bytes of %q are %q (%s), %v", r.limit, r.content, text, note, err)
		}
	}
	if _, _, err := tail(path+"x", 4); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a log that is missing: %v", err)
	}
}

// A bundle of a mesh of which nothing runs is whole: it says what is missing. So is that of a worker.
func TestCollectWithNothingRunning(t *testing.T) {
	ended := subprocess.Process{Command: subprocess.Command{Name: plan.APIServer, Log: "/no/such"}}
	for name, record := range map[string]*state.State{
		"control plane": {Processes: []subprocess.Process{ended}},
		"worker":        {Server: "https://127.0.0.1:1", Nodes: []state.Node{{Name: "w"}}},
	} {
		t.Run(name, func(t *testing.T) { collectAtRest(t, record) })
	}
}

// collectAtRest collects a bundle by a record of a mesh of which nothing runs, and whose folder is empty.
func collectAtRest(t *testing.T, record *state.State) {
	dir := t.TempDir()
	output := filepath.Join(dir, "bundle.tar.gz")
	m := &mesh.Mesh{Layout: plan.Layout{Dir: filepath.Join(dir, "mesh")}, State: record}
	if err := os.MkdirAll(m.Layout.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(output, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	summary, err := Collect(t.Context(), m, output, now)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	files := unpacked(t, bytes.NewReader(packed))
	if len(files) != summary.Files+1 || len(summary.Missing) < len(kinds)+len(record.Processes)*(1+len(pages)) {
		t.Errorf("it holds %d files, said are %+v", len(files), summary)
	}
	for _, name := range []string{"version.txt", "keel.json", "status.json", "machine/kernel", "machine/disk"} {
		if files[name] == "" {
			t.Errorf("%s is missing: %v", name, summary.Missing)
		}
	}
	if info, err := os.Stat(output); err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode: %v, %v", info.Mode(), err)
	}
	for _, p := range record.Processes {
		why := "  daemons/" + p.Name + "/readyz.txt: " + p.Name + " does not run\n"
		if !strings.Contains(files["index.txt"], why) {
			t.Errorf("the index does not say %q:\n%s", why, files["index.txt"])
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

// Where a bundle cannot be written, the flag is named.
func TestCollectWithoutFolder(t *testing.T) {
	m := &mesh.Mesh{State: &state.State{}}
	_, err := Collect(t.Context(), m, filepath.Join(t.TempDir(), "no", "such"), now)
	if err == nil || !strings.HasPrefix(err.Error(), "--output: ") {
		t.Errorf("got %v", err)
	}
}
