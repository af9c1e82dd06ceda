// Package subpath binds a part of a volume for one container, without ever following a symbolic link out of the volume:
// containers write to volumes and may try to.
package subpath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Mounter is the part of volume.Mounter that this package needs.
type Mounter interface {
	Bind(source *os.File, target string) error
	IsMount(target string) (bool, error)
	Unmount(target string) error
}

// Bind binds what is at the relative path inside the folder root to target, and creates missing folders on the way
// with the mode of root. It first removes an earlier mount at target: that may be an older state of the same path.
func Bind(mounter Mounter, root, path, target string) error {
	if !filepath.IsLocal(path) {
		return fmt.Errorf("subPath %q must be a relative path without '..'", path)
	}
	source, err := open(root, filepath.Clean(path))
	if err != nil {
		return fmt.Errorf("preparing subPath %q: %w", path, err)
	}
	defer source.Close()
	if err := release(mounter, target); err != nil {
		return err
	}
	if err := placeholder(source, target); err != nil {
		return fmt.Errorf("preparing subPath %q: %w", path, err)
	}
	return mounter.Bind(source, target)
}

func release(mounter Mounter, target string) error {
	for {
		mounted, err := mounter.IsMount(target)
		if err != nil || !mounted {
			return err
		}
		if err := mounter.Unmount(target); err != nil {
			return fmt.Errorf("unmounting an earlier subPath: %w", err)
		}
	}
}

// placeholder creates an empty file or folder at target, matching source.
func placeholder(source *os.File, target string) error {
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	if old, err := os.Lstat(target); err == nil && old.IsDir() != info.IsDir() {
		if err := os.Remove(target); err != nil {
			return err
		}
	}
	if info.IsDir() {
		return os.MkdirAll(target, 0o750)
	}
	file, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return file.Close()
}

// open returns a handle of what is at path below root. The kernel resolves links, and only inside root.
func open(root, path string) (*os.File, error) {
	// Only a handle: a hostPath may contain a FIFO or a device.
	base, err := os.OpenFile(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	file, err := openBelow(base, path)
	if !errors.Is(err, unix.ENOENT) {
		return file, err
	}
	info, err := base.Stat()
	if err != nil {
		return nil, err
	}
	if err := makeFolders(base, path, info.Mode()); err != nil {
		return nil, err
	}
	return openBelow(base, path)
}

func openBelow(base *os.File, path string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(int(base.Fd()), path, &how)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR): // a rename on the way: look again
			continue
		case errors.Is(err, unix.EXDEV):
			return nil, fmt.Errorf("%s leads out of the volume", path)
		case err != nil:
			return nil, fmt.Errorf("opening %s: %w", path, err)
		}
		return os.NewFile(uintptr(fd), filepath.Join(base.Name(), path)), nil
	}
}

// makeFolders creates each missing folder of path, from a handle of its parent.
func makeFolders(base *os.File, path string, mode os.FileMode) error {
	parent := "."
	for _, name := range strings.Split(path, "/") {
		dir, err := openBelow(base, parent)
		if err != nil {
			return err
		}
		err = unix.Mkdirat(int(dir.Fd()), name, uint32(mode.Perm()))
		if err == nil {
			// The umask may have cleared bits.
			err = chmodBelow(base, filepath.Join(parent, name), mode.Perm())
		}
		dir.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("making folder %s: %w", filepath.Join(parent, name), err)
		}
		parent = filepath.Join(parent, name)
	}
	return nil
}

func chmodBelow(base *os.File, path string, perm os.FileMode) error {
	dir, err := openBelow(base, path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), perm)
}
