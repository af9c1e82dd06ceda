package upgrade

import (
	"fmt"
	"maps"
	"slices"
)

// Copy is a file that an upgrade writes.
type Copy struct {
	// Disk is the kernel's number of the file system, Folder a folder on it.
	Disk   uint64
	Folder string
	// Bytes are the file's, Free what is left on the disk.
	Bytes, Free uint64
}

// spare is what is to be left on a disk beside the copies.
const spare = 64 << 20

// CheckRoom returns a sentence for each disk on which the copies have no room.
func CheckRoom(copies []Copy) (problems []string) {
	needed, of := map[uint64]uint64{}, map[uint64]Copy{}
	for _, c := range copies {
		needed[c.Disk] += c.Bytes
		if _, seen := of[c.Disk]; !seen {
			of[c.Disk] = c
		}
	}
	for _, disk := range slices.Sorted(maps.Keys(needed)) {
		if c := of[disk]; c.Free < needed[disk]+spare {
			problems = append(problems, fmt.Sprintf("the disk of %s has %d MiB left, and the programs need %d MiB: "+
				"make room first", c.Folder, c.Free>>20, (needed[disk]+spare)>>20))
		}
	}
	return problems
}
