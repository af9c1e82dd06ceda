// Package plainfile opens the files on the host that a container may write, or replace by something else: logs,
// termination messages, the hosts file of a Pod. Opening one follows no symbolic link, never blocks (as opening a
// FIFO may), touches no device, and fails for anything but a regular file.
package plainfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNotPlain is wrapped by errors about what is no regular file or is reached through a symbolic link.
var ErrNotPlain = errors.New("not a regular file that is reached without symbolic links")

// Root is a folder whose own path no container can change. All paths given to its methods are below it.
type Root string

// Open opens a file for reading.
func (r Root) Open(path string) (*os.File, error) { return r.OpenFile(path, os.O_RDONLY, 0) }

// OpenFile opens a file with the flags of package os, and creates it with perm if they include O_CREATE.
func (r Root) OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	for {
		file, err := r.reopen(path, flag&^os.O_CREATE)
		if flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
		fd, err := r.openAt(path, flag|os.O_EXCL, perm)
		if errors.Is(err, fs.ErrExist) { // created by another process meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

// Folder opens a folder, so that its contents can be renamed and removed even if the path changes.
func (r Root) Folder(path string) (*os.Root, error) {
	fd, err := r.openAt(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) //nolint:errcheck // a handle without contents
	return os.OpenRoot(magicLink(fd))
}

// reopen checks what is at the path before it opens it.
func (r Root) reopen(path string, flag int) (*os.File, error) {
	handle, err := r.openAt(path, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(handle) //nolint:errcheck // a handle without contents
	var stat unix.Stat_t
	if err := unix.Fstat(handle, &stat); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotPlain}
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(magicLink(handle), flag|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openAt opens a path below the root without following any link below it.
func (r Root) openAt(path string, flag int, perm fs.FileMode) (int, error) {
	name, err := filepath.Rel(string(r), path)
	if err != nil || !filepath.IsLocal(name) {
		return -1, fmt.Errorf("%s does not lie in %s", path, string(r))
	}
	root, err := retry(func() (int, error) {
		return unix.Open(string(r), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: string(r), Err: err}
	}
	defer unix.Close(root) //nolint:errcheck // a handle without contents
	how := unix.OpenHow{
		Flags:   uint64(flag | unix.O_NOFOLLOW | unix.O_CLOEXEC),
		Mode:    uint64(perm.Perm()),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	if flag&unix.O_CREAT == 0 {
		how.Mode = 0
	}
	fd, err := lookUp(root, name, &how)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		err = ErrNotPlain
	}
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// retry repeats the call while a signal interrupts it.
func retry(open func() (int, error)) (int, error) {
	for {
		if fd, err := open(); !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// renames is how often a path is looked up again after renames of folders on the way.
const renames = 100

// lookUp opens a path below an open folder.
func lookUp(root int, name string, how *unix.OpenHow) (fd int, err error) {
	for range renames {
		fd, err = retry(func() (int, error) { return unix.Openat2(root, name, how) })
		if !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}

// magicLink returns a path that leads to a descriptor's open file.
func magicLink(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
