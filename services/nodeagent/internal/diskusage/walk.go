package diskusage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// MaxDepth bounds the depth of folders: each level keeps a file open, and no path of a program reaches deeper.
const MaxDepth = 1000

// namesAtOnce bounds how many names of a folder are in memory at a time.
const namesAtOnce = 1000

// blockSize is the unit of stat(2).
const blockSize = 512

// Usage is how much of its file system the files in a folder use.
type Usage struct {
	Bytes, Inodes int64
	// TooDeep means that its folders are nested deeper than could be measured.
	TooDeep bool
}

// Enough is the amount that decides the question of a measurement, which ends there. Zero values are no bound.
type Enough struct{ Bytes, Inodes int64 }

// Bound is for measurements without such a question: it bounds the number of files per folder.
var Bound = Enough{Inodes: 200_000}

// Folder adds up how much of its file system the files in a folder use, and stops as soon as that is more than
// enough. It follows no link and enters no other file system. Files removed meanwhile do not count; a missing
// folder is empty. If ctx ends it returns what it has found so far, with the error.
func Folder(ctx context.Context, dir string, enough Enough) (Usage, error) {
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Usage{}, nil
	}
	if err != nil {
		return Usage{}, fmt.Errorf("opening %s: %w", dir, err)
	}
	root := os.NewFile(uintptr(fd), dir)
	defer root.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return Usage{}, fmt.Errorf("looking at %s: %w", dir, err)
	}
	w := walk{ctx: ctx, device: stat.Dev, enough: enough, seen: map[uint64]bool{}}
	w.usage = Usage{Bytes: stat.Blocks * blockSize, Inodes: 1}
	if err := w.folder(root, 1); err != nil {
		return w.usage, fmt.Errorf("measuring %s: %w", dir, err)
	}
	return w.usage, nil
}

type walk struct {
	ctx    context.Context
	device uint64
	enough Enough
	usage  Usage
	// seen holds the files with several names that were counted.
	seen map[uint64]bool
}

// done reports whether nothing further can change the answer.
func (w *walk) done() bool {
	return w.usage.TooDeep || w.enough.Bytes > 0 && w.usage.Bytes > w.enough.Bytes ||
		w.enough.Inodes > 0 && w.usage.Inodes > w.enough.Inodes
}

func (w *walk) folder(dir *os.File, depth int) error {
	for !w.done() {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		names, err := dir.Readdirnames(namesAtOnce)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := w.entry(dir, name, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) entry(dir *os.File, name string, depth int) error {
	if w.done() {
		return nil
	}
	var stat unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return err
	case stat.Dev != w.device || w.seen[stat.Ino]:
		return nil
	}
	isFolder := stat.Mode&unix.S_IFMT == unix.S_IFDIR
	if !isFolder && stat.Nlink > 1 {
		w.seen[stat.Ino] = true
	}
	w.usage.Inodes++
	if w.usage.Bytes += stat.Blocks * blockSize; !isFolder || w.done() {
		return nil
	}
	if depth >= MaxDepth {
		w.usage.TooDeep = true
		return nil
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // it was replaced a moment ago
	}
	if err != nil {
		return err
	}
	sub := os.NewFile(uintptr(fd), name)
	defer sub.Close()
	return w.folder(sub, depth+1)
}
