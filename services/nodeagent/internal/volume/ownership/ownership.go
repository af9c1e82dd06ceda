// Package ownership gives what a volume holds to the group of a Pod (fsGroup).
package ownership

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// What the group may do with files, and besides with folders, whose new entries are the group's too.
const (
	fileMode   = 0o660
	folderMode = fileMode | 0o110 | unix.S_ISGID
)

// Give gives the folder root with all in it to the group. It follows no symbolic link and enters no mount: containers
// write there. onlyIfOthers leaves all as it is where the root folder is the group's already.
func Give(root string, group int, onlyIfOthers bool) error {
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", root, err)
	}
	dir := os.NewFile(uintptr(fd), root)
	defer dir.Close()
	stat, err := look(fd)
	if err != nil {
		return fmt.Errorf("looking at %s: %w", root, err)
	}
	if onlyIfOthers && int(stat.Gid) == group && stat.Mode&folderMode == folderMode {
		return nil
	}
	g := giver{group: group, mount: stat.Mnt_id}
	return g.folder(dir, stat)
}

// giver goes through one mount.
type giver struct {
	group int
	mount uint64
}

// folder gives away what the folder holds, and then the folder itself: a root that is the group's is finished.
func (g giver) folder(handle *os.File, stat unix.Statx_t) error {
	fd, err := unix.Openat(int(handle.Fd()), ".", unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", handle.Name(), err)
	}
	dir := os.NewFile(uintptr(fd), handle.Name())
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("reading %s: %w", handle.Name(), err)
	}
	for _, name := range names {
		if err := g.entry(dir, name); err != nil {
			return err
		}
	}
	return g.give(handle, stat)
}

func (g giver) entry(dir *os.File, name string) error {
	path := dir.Name() + "/" + name
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil // gone meanwhile
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	handle := os.NewFile(uintptr(fd), path)
	defer handle.Close()
	stat, err := look(fd)
	switch {
	case err != nil:
		return fmt.Errorf("looking at %s: %w", path, err)
	case stat.Mnt_id != g.mount:
		return nil
	case stat.Mode&unix.S_IFMT == unix.S_IFDIR:
		return g.folder(handle, stat)
	}
	return g.give(handle, stat)
}

// give gives one thing away, whatever it is; the mode of a link is nobody's.
func (g giver) give(handle *os.File, stat unix.Statx_t) error {
	fd := int(handle.Fd())
	if err := unix.Fchownat(fd, "", -1, g.group, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("giving %s to group %d: %w", handle.Name(), g.group, err)
	}
	mode := uint32(stat.Mode) & 0o7777
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil
	case unix.S_IFDIR:
		mode |= folderMode
	default:
		mode |= fileMode
	}
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode); err != nil {
		return fmt.Errorf("letting group %d use %s: %w", g.group, handle.Name(), err)
	}
	return nil
}

func look(fd int) (stat unix.Statx_t, err error) {
	err = unix.Statx(fd, "", unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH,
		unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &stat)
	return stat, err
}
