package csidriver

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// bind shows a folder at a target, once.
func (d *Driver) bind(folder, target string, readOnly bool) error {
	return d.Mounts.Do(func() error { return bind(folder, target, readOnly) })
}

func bind(folder, target string, readOnly bool) error {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, target, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &stat); err != nil {
		return fmt.Errorf("looking at %s: %w", target, err)
	}
	if stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return nil
	}
	if err := unix.Mount(folder, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s at %s: %w", folder, target, err)
	}
	if !readOnly {
		return nil
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// unmount undoes bind; what is not mounted is no error.
func (d *Driver) unmount(target string) error {
	err := d.Mounts.Do(func() error { return unix.Unmount(target, unix.UMOUNT_NOFOLLOW) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
