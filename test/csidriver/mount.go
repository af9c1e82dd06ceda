package csidriver

import (
	"errors"
	"fmt"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

// bind shows a folder or a file at a target, once.
func (d *Driver) bind(folder, target string, readOnly bool) error {
	return d.Mounts.Do(func() error { return bind(folder, target, readOnly) })
}

func bind(folder, target string, readOnly bool) error {
	if mounted, err := isMount(target); err != nil || mounted {
		return err
	}
	if err := unix.Mount(folder, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s at %s: %w", folder, target, err)
	}
	if !readOnly {
		return nil
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// isMount reports whether something is mounted at a target.
func isMount(target string) (bool, error) {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, target, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &stat); err != nil {
		return false, fmt.Errorf("looking at %s: %w", target, err)
	}
	return stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// unmount undoes bind; what is not mounted is no error.
func (d *Driver) unmount(target string) error {
	err := d.Mounts.Do(func() error { return unix.Unmount(target, unix.UMOUNT_NOFOLLOW) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// unmountAndRemove undoes bind and removes the target; what is not there is no error.
func (d *Driver) unmountAndRemove(target string) error {
	if err := d.unmount(target); err != nil {
		return err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// mountMemory mounts a file system in memory at a target, once.
func (d *Driver) mountMemory(target string, size int64) error {
	return d.Mounts.Do(func() error {
		if mounted, err := isMount(target); err != nil || mounted {
			return err
		}
		return unix.Mount("tmpfs", target, "tmpfs", 0, fmt.Sprint("mode=777,size=", size))
	})
}

// growMemory gives a file system in memory a size.
func (d *Driver) growMemory(target string, size int64) error {
	return d.Mounts.Do(func() error {
		return unix.Mount("", target, "", unix.MS_REMOUNT, fmt.Sprint("mode=777,size=", size))
	})
}

// usage is how full a file system is.
func (d *Driver) usage(path string) ([]*csi.VolumeUsage, error) {
	var fs unix.Statfs_t
	if err := d.Mounts.Do(func() error { return unix.Statfs(path, &fs) }); err != nil {
		return nil, err
	}
	return []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: int64(fs.Blocks) * fs.Bsize, Available: int64(fs.Bavail) * fs.Bsize,
			Used: int64(fs.Blocks-fs.Bfree) * fs.Bsize},
		{Unit: csi.VolumeUsage_INODES, Total: int64(fs.Files), Available: int64(fs.Ffree),
			Used: int64(fs.Files - fs.Ffree)},
	}, nil
}
