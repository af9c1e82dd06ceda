package diskusage

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Space is what a file system has: all of it, what is free, and of the bytes what others than root may take.
type Space struct {
	Bytes, BytesFree, BytesAvailable uint64
	// Inodes is 0 where they are not counted.
	Inodes, InodesFree uint64
}

// SpaceOf returns what the file system of a folder has.
func SpaceOf(dir string) (Space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Space{}, fmt.Errorf("looking at the file system of %s: %w", dir, err)
	}
	size := uint64(fs.Bsize)
	return Space{Bytes: fs.Blocks * size, BytesFree: fs.Bfree * size, BytesAvailable: fs.Bavail * size,
		Inodes: fs.Files, InodesFree: fs.Ffree}, nil
}
