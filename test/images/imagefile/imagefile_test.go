package imagefile

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

var spec = Spec{
	Name: "keelson.dev/x:1",
	Entries: []Entry{{Path: "/bin", Dir: true, Mode: 0o755}, {Path: "/bin/a", Content: "A", Mode: 0o755},
		{Path: "/bin/b", Link: "a", Mode: 0o777}},
	Entrypoint: []string{"/bin/a"},
	Env:        []string{"V=1"},
	StopSignal: "SIGINT",
}

func TestTheArchiveHoldsTheImage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.tar")
	if err := Write(spec, file); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH || config.Config.Entrypoint[0] != "/bin/a" ||
		config.Config.Env[0] != "V=1" ||
		config.Config.StopSignal != "SIGINT" {
		t.Errorf("the configuration is %+v", config)
	}
	content := mutate.Extract(image)
	defer content.Close()
	var got []string
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSuffix(header.Name, "/")+">"+header.Linkname)
	}
	want := []string{"bin>", "bin/a>", "bin/b>a"}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("it holds %v, want %v", got, want)
	}
}

// A reader with the archive open continues to read the old one, and an image that cannot be made leaves the
// archive unchanged.
func TestAnArchiveIsReplacedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.tar")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no space left")
	err := replace(file, func(w io.Writer) error {
		_, err := io.WriteString(w, "ne")
		return errors.Join(err, failed)
	})
	if content, _ := os.ReadFile(file); !errors.Is(err, failed) || string(content) != "old" {
		t.Errorf("after %v it holds %q", err, content)
	}
	reader, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := Write(spec, file); err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(reader); err != nil || string(content) != "old" {
		t.Errorf("who had it open reads %q, %v", content, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "x.tar" {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o644 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

func TestTheSameSpecGivesTheSameBytes(t *testing.T) {
	dir := t.TempDir()
	var archives [2][]byte
	for i := range archives {
		file := filepath.Join(dir, "x.tar")
		if err := Write(spec, file); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two runs differ")
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	err := Write(Spec{Name: "keelson.dev/x:1", Entries: []Entry{{Path: "/a", Source: "/nosuchfile"}}},
		filepath.Join(t.TempDir(), "x.tar"))
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
