package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"keelson.dev/kit/namespaces"
)

// isNamespace tells whether a namespace is kept in a file.
func isNamespace(file string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(file, &stat) == nil && stat.Type == unix.NSFS_MAGIC
}

// makeNamespace keeps a new namespace in a file. move has the thread that calls it move there.
func makeNamespace(file, kind string, move func() error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o711); err != nil {
		return err
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	err := keep(file, kind, move)
	if kind == "mnt" && errors.Is(err, unix.EINVAL) {
		return keep(file, kind, func() error {
			if err := useUpNumbers(); err != nil {
				return err
			}
			return move()
		})
	}
	return err
}

// keep mounts what the thread of move has moved to. The mount is made by another thread: among other mounts it would be
// seen by nobody outside.
func keep(file, kind string, move func() error) error {
	return namespaces.OnThread(func() error {
		thread := unix.Gettid()
		mounted := make(chan error)
		if err := move(); err != nil {
			return err
		}
		go func() {
			source := fmt.Sprintf("/proc/self/task/%d/ns/%s", thread, kind)
			mounted <- unix.Mount(source, file, "none", unix.MS_BIND, "")
		}()
		return <-mounted
	})
}

// useUpNumbers has the kernel give the calling thread a greater number for its next namespace than there is yet. A
// mount namespace is kept only in one of a smaller number, lest one keep itself; and Linux 6.18 gives the numbers to
// its processors by such a many, so that a newer namespace can have the smaller one.
func useUpNumbers() error {
	const many = 4096
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for cpu := range len(all) * 64 {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	for range many {
		if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
			return err
		}
	}
	return nil
}

// removeNamespace ends what makeNamespace has made; what is not there is no error.
func removeNamespace(file string) error {
	for isNamespace(file) { // it may be mounted more than once
		if err := unix.Unmount(file, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("removing the namespace %s: %w", file, err)
		}
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the file of a namespace: %w", err)
	}
	return nil
}
