// Package ownership changes the group of a volume's contents to a Pod's (fsGroup).
package ownership

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The group's permissions on files, and on folders, whose new entries get the group too.
const (
	fileMode   = 0o660
	folderMode = fileMode | 0o110 | unix.S_ISGID
)

// Give changes the group of the folder root and all in it. It follows no symbolic link and enters no mount:
// containers write there. With onlyIfOthers it changes nothing if the root folder already has the group.
func Give(root string, group int, onlyIfOthers bool) error {
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", root, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	stat, err := look(fd)
	if err != nil {
		return fmt.Errorf("looking at %s: %w", root, err)
	}
	if onlyIfOthers && int(stat.Gid) == group && stat.Mode&folderMode == folderMode {
		return nil
	}
	g := giver{group: group, mount: stat.Mnt_id, path: []string{root}}
	return g.folder(fd, stat)
}

// deepest bounds the depth of folders: each level keeps a file open, and no path of a program reaches deeper.
const deepest = 1000

// namesAtOnce bounds how many names of a folder are in memory at a time.
const namesAtOnce = 1000

// giver walks one mount.
type giver struct {
	group int
	mount uint64
	// path leads to the current file.
	path []string
}

// at returns the path of the current file.
func (g *giver) at() string { return strings.Join(g.path, "/") }

// folder changes the group of the folder's contents, and then of the folder itself: a root that has the group is
// complete.
func (g *giver) folder(handle int, stat unix.Statx_t) error {
	if len(g.path) > deepest {
		return fmt.Errorf("the folders in %s are nested deeper than %d", g.path[0], deepest)
	}
	fd, err := unix.Openat(handle, ".", unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", g.at(), err)
	}
	dir := os.NewFile(uintptr(fd), "")
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(namesAtOnce)
		if errors.Is(err, io.EOF) {
			return g.give(handle, stat)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", g.at(), err)
		}
		for _, name := range names {
			g.path = append(g.path, name)
			err := g.entry(fd, name)
			g.path = g.path[:len(g.path)-1]
			if err != nil {
				return err
			}
		}
	}
}

func (g *giver) entry(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil // removed meanwhile
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", g.at(), err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	stat, err := look(fd)
	switch {
	case err != nil:
		return fmt.Errorf("looking at %s: %w", g.at(), err)
	case stat.Mnt_id != g.mount:
		return nil
	case stat.Mode&unix.S_IFMT == unix.S_IFDIR:
		return g.folder(fd, stat)
	}
	return g.give(fd, stat)
}

// give changes the group of one file of any type, and the mode unless it is a link.
func (g *giver) give(fd int, stat unix.Statx_t) error {
	if err := unix.Fchownat(fd, "", -1, g.group, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("giving %s to group %d: %w", g.at(), g.group, err)
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
		return fmt.Errorf("letting group %d use %s: %w", g.group, g.at(), err)
	}
	return nil
}

func look(fd int) (stat unix.Statx_t, err error) {
	err = unix.Statx(fd, "", unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH,
		unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &stat)
	return stat, err
}
