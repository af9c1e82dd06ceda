package podfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// Remove removes a Pod's folder with all that is in it, so it must be the last to go. A mount below is an error, and
// what lies in it stays. A folder that is not there is no error.
func (r Root) Remove(uid types.UID) error {
	if err := RemoveTree(r.Pod(uid)); err != nil {
		return fmt.Errorf("removing the pod's folder: %w", err)
	}
	return nil
}

// RemoveTree removes a folder, whose parent is the agent's own, with all that is in it and refuses to enter a mount,
// bind mounts of the same file system included. It follows no symbolic link. A folder that is not there is no error.
func RemoveTree(dir string) error {
	parent, err := os.Open(filepath.Dir(dir)) //nolint:forbidigo // the folder above is the agent's own
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	mount, err := mountOf(parent, "")
	if err != nil {
		return err
	}
	return removeAt(parent, filepath.Base(dir), mount)
}

// removeAt removes one entry of an open folder.
func removeAt(parent *os.File, name string, mount uint64) error {
	path := filepath.Join(parent.Name(), name)
	found, err := mountOf(parent, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("looking at %s: %w", path, err)
	case found != mount:
		return fmt.Errorf("%s is still a mount", path)
	}
	err = unix.Unlinkat(int(parent.Fd()), name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return removeFolder(parent, name, mount)
}

func removeFolder(parent *os.File, name string, mount uint64) error {
	path := filepath.Join(parent.Name(), name)
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	dir := os.NewFile(uintptr(fd), path)
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	var problems []error
	for _, name := range names {
		problems = append(problems, removeAt(dir, name, mount))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}

// mountOf returns the identity of the mount that an entry of an open folder (or, with an empty name, the folder) is in.
func mountOf(dir *os.File, name string) (uint64, error) {
	var stat unix.Statx_t
	err := unix.Statx(int(dir.Fd()), name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &stat)
	return stat.Mnt_id, err
}
