// Package emptydir creates emptyDir volumes: a folder on the node's disk, in memory or in huge pages that lives as
// long as its Pod.
package emptydir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/volume"
)

// Kind is the volume.Kind of emptyDir.
type Kind struct{ Mounter volume.Mounter }

// Name implements volume.Kind.
func (Kind) Name() string { return "emptyDir" }

// Handles implements volume.Kind.
func (Kind) Handles(v *corev1.Volume) bool { return v.EmptyDir != nil }

// SetUp implements volume.Kind. It leaves an existing volume as it is: its contents belong to the containers.
func (k Kind) SetUp(_ context.Context, request volume.Request) (volume.Result, error) {
	group := volume.FSGroup(request.Pod)
	mode := uint32(0o777)
	if group >= 0 {
		mode |= 0o2000
	}
	result := volume.Result{Path: request.Dir, Own: true}
	source := request.Volume.EmptyDir
	if source.Medium == corev1.StorageMediumDefault {
		return result, makeFolder(request.Dir, mode, group)
	}
	if standing, err := k.Mounter.IsMount(request.Dir); err != nil || standing {
		return result, err
	}
	if err := os.MkdirAll(request.Dir, 0o750); err != nil {
		return result, fmt.Errorf("making the volume's folder: %w", err)
	}
	if source.Medium == corev1.StorageMediumMemory {
		return result, k.Mounter.Tmpfs(request.Dir, memorySize(request.Pod, source, request.Allocatable), mode, group)
	}
	pageSize, size, err := hugePages(request.Pod, source.Medium)
	if err != nil {
		return result, err
	}
	return result, k.Mounter.HugePages(request.Dir, pageSize, size, mode, group)
}

// makeFolder creates the folder with mode and group in one visible step, so that an existing folder is complete.
func makeFolder(dir string, mode uint32, group int64) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".new-*")
	if err != nil {
		return fmt.Errorf("making the volume's folder: %w", err)
	}
	if group >= 0 {
		if err := os.Lchown(fresh, -1, int(group)); err != nil {
			return fmt.Errorf("giving the volume's folder to its group: %w", err)
		}
	}
	flags := fs.FileMode(mode & 0o777)
	if mode&0o2000 != 0 {
		flags |= fs.ModeSetgid
	}
	if err := os.Chmod(fresh, flags); err != nil {
		return fmt.Errorf("opening up the volume's folder: %w", err)
	}
	if err := os.Rename(fresh, dir); err != nil {
		return fmt.Errorf("putting the volume's folder in place: %w", err)
	}
	return nil
}
