package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/plan"
)

// EnsureHosts makes of each node a host of its own beside the machine, or what is missing of it: a host name, which is
// the node's, and mounts. Nodes take over what the machine has mounted, and what it mounts and unmounts later as far as
// its own mounts are shared; nothing of theirs comes out. Their own are shared, so that volumes may be mounted by Pods.
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

// RemoveHosts ends what EnsureHosts has made, with all that is still mounted there; what is not there is no error. What
// runs in it must have ended.
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
			return os.Remove(layout.Hosts()) // it is no mount any more
		} else if err != nil {
			return fmt.Errorf("unmounting %s: %w", layout.Hosts(), err)
		}
	}
}

// ensurePrivate makes a folder a mount of itself that is private: the kernel keeps mount namespaces nowhere else.
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

// ownMounts leaves out what keeps namespaces, those of other meshes too: none would end while this one stands.
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
