// Package hostpath gives containers a path of the host, after checking that it is what the Pod expects.
package hostpath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/volume"
)

// Kind is the volume.Kind of hostPath.
type Kind struct{}

// Name implements volume.Kind.
func (Kind) Name() string { return "hostPath" }

// Handles implements volume.Kind.
func (Kind) Handles(v *corev1.Volume) bool { return v.HostPath != nil }

// SetUp implements volume.Kind.
func (Kind) SetUp(_ context.Context, request volume.Request) (volume.Result, error) {
	source := request.Volume.HostPath
	return volume.Result{Path: source.Path}, Prepare(source)
}

// Prepare creates what the type asks for and checks that it exists.
func Prepare(source *corev1.HostPathVolumeSource) error {
	expected := ptr.Deref(source.Type, corev1.HostPathUnset)
	if err := create(source.Path, expected); err != nil {
		return fmt.Errorf("hostPath type check failed: %w", err)
	}
	if err := check(source.Path, expected); err != nil {
		return fmt.Errorf("hostPath type check failed: %w", err)
	}
	return nil
}

// create creates what is missing if the type allows it.
func create(path string, expected corev1.HostPathType) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch expected {
	case corev1.HostPathDirectoryOrCreate:
		return os.MkdirAll(path, 0o755)
	case corev1.HostPathFileOrCreate:
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		return file.Close()
	}
	return nil
}

// sorts holds what each type requires at the path.
var sorts = map[corev1.HostPathType]struct {
	words string
	is    func(fs.FileMode) bool
}{
	corev1.HostPathDirectory:         {"a directory", fs.FileMode.IsDir},
	corev1.HostPathDirectoryOrCreate: {"a directory", fs.FileMode.IsDir},
	corev1.HostPathFile:              {"a file", fs.FileMode.IsRegular},
	corev1.HostPathFileOrCreate:      {"a file", fs.FileMode.IsRegular},
	corev1.HostPathSocket:            {"a socket file", func(m fs.FileMode) bool { return m&fs.ModeSocket != 0 }},
	corev1.HostPathCharDev: {"a character device",
		func(m fs.FileMode) bool { return m&fs.ModeCharDevice != 0 }},
	corev1.HostPathBlockDev: {"a block device", func(m fs.FileMode) bool {
		return m&fs.ModeDevice != 0 && m&fs.ModeCharDevice == 0
	}},
}

func check(path string, expected corev1.HostPathType) error {
	if expected == corev1.HostPathUnset {
		return nil
	}
	sort, ok := sorts[expected]
	if !ok {
		return fmt.Errorf("%s is not a known type", expected)
	}
	info, err := os.Stat(path)
	if err != nil || !sort.is(info.Mode()) {
		return fmt.Errorf("%s is not %s", path, sort.words)
	}
	return nil
}
