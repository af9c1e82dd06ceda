package diskusage

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Space is the size of a file system: total, free, and the bytes available to users other than root.
type Space struct {
	Bytes, BytesFree, BytesAvailable uint64
	// Inodes is 0 if the file system does not count them.
	Inodes, InodesFree uint64
}

// SpaceOf returns the size of a folder's file system.
func SpaceOf(dir string) (Space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Space{}, fmt.Errorf("looking at the file system of %s: %w", dir, err)
	}
	size := uint64(fs.Bsize)
	return Space{Bytes: fs.Blocks * size, BytesFree: fs.Bfree * size, BytesAvailable: fs.Bavail * size,
		Inodes: fs.Files, InodesFree: fs.Ffree}, nil
}
