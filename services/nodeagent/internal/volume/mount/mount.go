// Package mount is the volume.Mounter of the Linux kernel.
package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Kernel mounts in the mount namespace of this process, which the container runtime shares.
type Kernel struct{}

// Tmpfs implements volume.Mounter. Since Linux 6.3, the file system is never swapped out.
func (Kernel) Tmpfs(target string, size int64, mode uint32, gid int64) error {
	options := options(mode, gid)
	if size > 0 {
		options = append(options, fmt.Sprintf("size=%d", size))
	}
	err := mount("tmpfs", target, append(slices.Clone(options), "noswap"))
	if errors.Is(err, unix.EINVAL) { // an older kernel does not know the option
		return mount("tmpfs", target, options)
	}
	return err
}

// HugePages implements volume.Mounter.
func (Kernel) HugePages(target string, pageSize, size int64, mode uint32, gid int64) error {
	options := append(options(mode, gid), fmt.Sprintf("pagesize=%d", pageSize))
	if size > 0 {
		options = append(options, fmt.Sprintf("size=%d", size))
	}
	return mount("hugetlbfs", target, options)
}

func options(mode uint32, gid int64) []string {
	options := []string{fmt.Sprintf("mode=%o", mode)}
	if gid >= 0 {
		options = append(options, fmt.Sprintf("gid=%d", gid))
	}
	return options
}

func mount(kind, target string, options []string) error {
	if err := unix.Mount(kind, target, kind, 0, strings.Join(options, ",")); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", kind, target, err)
	}
	return nil
}

// Bind implements volume.Mounter. It reaches the source through its descriptor, so no later change of names can
// turn it into something else.
func (Kernel) Bind(source *os.File, target string) error {
	from := fmt.Sprintf("/proc/self/fd/%d", source.Fd())
	if err := unix.Mount(from, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s at %s: %w", source.Name(), target, err)
	}
	return nil
}

// IsMount implements volume.Mounter.
func (Kernel) IsMount(target string) (bool, error) {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, target, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &stat)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at %s: %w", target, err)
	}
	return stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// IsDevice implements volume.Mounter.
func (Kernel) IsDevice(target string) (bool, error) {
	info, err := os.Lstat(target)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at %s: %w", target, err)
	}
	return info.Mode().Type() == os.ModeDevice, nil
}

// Unmount implements volume.Mounter.
func (Kernel) Unmount(target string) error {
	err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // no mount point, or missing
		return nil
	}
	return err
}

// Under implements volume.Mounter. Links above dir are followed, and none at dir itself: a driver may have put one
// there.
func (Kernel) Under(dir string) ([]string, error) {
	above, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", dir, err)
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(filepath.Join(above, filepath.Base(dir))))
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	targets := make([]string, len(mounts))
	for i, mount := range mounts {
		targets[i] = mount.Mountpoint
	}
	slices.Reverse(targets) // later mounts are on top
	slices.SortStableFunc(targets, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return targets, nil
}
