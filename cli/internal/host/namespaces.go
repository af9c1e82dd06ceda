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

// isNamespace reports whether a file is the mount of a namespace.
func isNamespace(file string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(file, &stat) == nil && stat.Type == unix.NSFS_MAGIC
}

// makeNamespace creates a namespace and bind-mounts it on a file. move moves the calling thread into the new
// namespace.
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

// keep mounts the namespace into which move has moved its thread. Another thread makes the mount: a mount made
// inside a new mount namespace would not be visible outside.
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

// useUpNumbers makes the kernel give the calling thread's next namespace a greater number than any existing one. A
// mount namespace can only be mounted in one with a smaller number, so that none can hold itself; and Linux 6.18
// hands out the numbers to each CPU in batches of that size (many), so that a newer namespace can have a smaller
// number.
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

// removeNamespace undoes makeNamespace; a missing namespace or file is no error.
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
