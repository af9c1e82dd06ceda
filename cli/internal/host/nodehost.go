package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/plan"
)

// EnsureHosts creates the missing UTS and mount namespaces that make each node a separate host: its host name is
// the node's name. Nodes get the machine's mounts, and also its later mounts and unmounts below shared mounts; the
// nodes' mounts do not propagate to the machine. The nodes' mounts are shared, so that Pods may mount volumes.
func EnsureHosts(layout plan.Layout, nodes []string) error {
	if err := ensurePrivate(layout.Hosts()); err != nil {
		return fmt.Errorf("making %s a mount that is private: %w", layout.Hosts(), err)
	}
	for _, node := range nodes {
		for file, make := range map[string]func() error{
			layout.UTSNS(node):   func() error { return makeNamespace(layout.UTSNS(node), "uts", ownName(node)) },
			layout.MountNS(node): func() error { return makeNamespace(layout.MountNS(node), "mnt", ownMounts) },
		} {
			if isNamespace(file) {
				continue
			}
			if err := make(); err != nil {
				return fmt.Errorf("making %s a host of its own: %w", node, err)
			}
		}
	}
	return nil
}

// RemoveHosts removes the namespaces that EnsureHosts has made, with all their mounts; a missing one is no error.
// The processes in them must have ended.
func RemoveHosts(layout plan.Layout) error {
	entries, err := os.ReadDir(layout.Hosts())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for the nodes' namespaces: %w", err)
	}
	for _, entry := range entries {
		err = errors.Join(err, removeNamespace(layout.Hosts()+"/"+entry.Name()))
	}
	if err != nil {
		return err
	}
	for {
		if err := unix.Unmount(layout.Hosts(), unix.MNT_DETACH); errors.Is(err, unix.EINVAL) {
			return os.Remove(layout.Hosts()) // it is no longer a mount point
		} else if err != nil {
			return fmt.Errorf("unmounting %s: %w", layout.Hosts(), err)
		}
	}
}

// ensurePrivate makes a folder a private bind mount of itself: the kernel allows mount namespaces to be mounted
// only below a private mount.
func ensurePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	private := func() error { return unix.Mount("", dir, "", unix.MS_PRIVATE, "") }
	err := private()
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return private()
}

func ownName(node string) func() error {
	return func() error {
		if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
			return err
		}
		return unix.Sethostname([]byte(node))
	}
}

// ownMounts leaves out the mounts of namespaces, also those of other meshes: otherwise they could not end while
// this one exists.
func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keeping what is mounted from the machine: %w", err)
	}
	table, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return fmt.Errorf("reading the mounts: %w", err)
	}
	for _, point := range plan.KeptNamespaces(string(table)) {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) &&
			!errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unmounting %s: %w", point, err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing what is mounted: %w", err)
	}
	return nil
}
