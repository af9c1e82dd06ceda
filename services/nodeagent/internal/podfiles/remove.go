package podfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// Remove removes a Pod's folder with all contents, so it must come last. A mount in it is an error, and the mount's
// contents stay. A missing folder is no error.
func (r Root) Remove(uid types.UID) error {
	if err := RemoveTree(r.Pod(uid)); err != nil {
		return fmt.Errorf("removing the pod's folder: %w", err)
	}
	return nil
}

// A Pod may have created folders that are nested without end, or one with any number of entries: the depth followed
// at a time and the number of names in memory are bounded.
const (
	deepest     = 200
	namesAtOnce = 1000
)

// RemoveTree removes a folder, whose parent is the agent's own, with all contents, and refuses to enter a mount,
// including bind mounts of the same file system. It follows no symbolic link. No other process may write in it
// meanwhile. A missing folder is no error.
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
	r := remover{mount: mount, path: []string{parent.Name()}}
	return r.entry(parent, filepath.Base(dir))
}

// remover removes one tree.
type remover struct {
	mount uint64
	// path leads to the folder that is being emptied, from the parent of the tree.
	path []string
	// top is the tree's own folder, into which deeply nested folders are moved.
	top   *os.File
	moved int
}

// at returns the path of an entry of the folder that is being emptied.
func (r *remover) at(name string) string { return filepath.Join(append(slices.Clip(r.path), name)...) }

// entry removes one entry of an open folder.
func (r *remover) entry(parent *os.File, name string) error {
	found, err := mountOf(parent, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("looking at %s: %w", r.at(name), err)
	case found != r.mount:
		return fmt.Errorf("%s is still a mount", r.at(name))
	}
	err = unix.Unlinkat(int(parent.Fd()), name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("removing %s: %w", r.at(name), err)
	}
	if len(r.path) > deepest {
		return r.raise(parent, name)
	}
	return r.folder(parent, name)
}

// raise moves a folder to the top of the tree, to be removed there.
func (r *remover) raise(parent *os.File, name string) error {
	for {
		r.moved++
		err := unix.Renameat2(int(parent.Fd()), name, int(r.top.Fd()), fmt.Sprintf(".deep-%d", r.moved),
			unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return fmt.Errorf("moving %s up: %w", r.at(name), err)
		}
		return nil
	}
}

// folder empties and removes a folder.
func (r *remover) folder(parent *os.File, name string) error {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", r.at(name), err)
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	if r.top == nil {
		r.top = dir
	}
	r.path = append(r.path, name)
	err = r.empty(dir)
	r.path = r.path[:len(r.path)-1]
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing %s: %w", r.at(name), err)
	}
	return nil
}

func (r *remover) empty(dir *os.File) error {
	for {
		names, err := dir.Readdirnames(namesAtOnce)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", r.at(""), err)
		}
		var problems []error
		for _, name := range names {
			problems = append(problems, r.entry(dir, name))
		}
		if err := errors.Join(problems...); err != nil {
			return err
		}
		// The position of the next names is uncertain after removals.
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("reading %s again: %w", r.at(""), err)
		}
	}
}

// mountOf returns the identity of the mount that an entry of an open folder (or, with an empty name, the folder) is
// in.
func mountOf(dir *os.File, name string) (uint64, error) {
	var stat unix.Statx_t
	err := unix.Statx(int(dir.Fd()), name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &stat)
	return stat.Mnt_id, err
}
