// Package imagefile makes container images out of files on this machine, without a registry and without a base image.
package imagefile

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Entry is one file of an image. Exactly one of Source, Content, Link and Dir says what it is.
type Entry struct {
	Path    string
	Source  string // a file of this machine
	Content string
	Link    string // the target of a symbolic link
	Dir     bool
	Mode    int64
}

// Spec says what an image holds and what it runs.
type Spec struct {
	Name       string // with its tag, for example "keelson.dev/pause:1"
	Entries    []Entry
	Entrypoint []string
	Command    []string
	Env        []string
	WorkingDir string
	Labels     map[string]string
	StopSignal string // what ends it, for example SIGINT; empty for the runtime's default
}

// Write makes the image and stores it as a docker archive, which containerd imports under the image's name. The same
// spec gives the same bytes. A reader of the file sees the old archive or the whole new one.
func Write(spec Spec, file string) error {
	tag, err := name.NewTag(spec.Name)
	if err != nil {
		return fmt.Errorf("naming the image: %w", err)
	}
	image, err := build(spec)
	if err != nil {
		return fmt.Errorf("making %s: %w", spec.Name, err)
	}
	if err := replace(file, func(w io.Writer) error { return tarball.Write(tag, image, w) }); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

// replace writes a temporary file beside the file and renames it. The temporary name does not have an archive's
// suffix.
func replace(file string, write func(io.Writer) error) error {
	beside, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(write(beside), beside.Chmod(0o644), beside.Close())
	if err == nil {
		err = os.Rename(beside.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(beside.Name()))
	}
	return nil
}

func build(spec Spec) (v1.Image, error) {
	content, err := layerTar(spec.Entries)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("making the layer: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("appending the layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	config = config.DeepCopy()
	// containerd passes over an image without a platform.
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{
		Entrypoint: spec.Entrypoint, Cmd: spec.Command, Env: spec.Env, WorkingDir: spec.WorkingDir, Labels: spec.Labels,
		StopSignal: spec.StopSignal,
	}
	return mutate.ConfigFile(image, config)
}

func layerTar(entries []Entry) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, entry := range entries {
		if err := writeEntry(writer, entry); err != nil {
			return nil, fmt.Errorf("adding %s: %w", entry.Path, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("ending the layer: %w", err)
	}
	return buffer.Bytes(), nil
}

func writeEntry(writer *tar.Writer, entry Entry) error {
	header := &tar.Header{Name: path.Clean(entry.Path)[1:], Mode: entry.Mode}
	content := []byte(entry.Content)
	switch {
	case entry.Dir:
		header.Typeflag = tar.TypeDir
		header.Name += "/"
	case entry.Link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, entry.Link
	case entry.Source != "":
		var err error
		if content, err = os.ReadFile(entry.Source); err != nil {
			return err
		}
	}
	if !entry.Dir && entry.Link == "" {
		header.Typeflag, header.Size = tar.TypeReg, int64(len(content))
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := writer.Write(content)
	return err
}
