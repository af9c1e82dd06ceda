// Package netdump reads lists of the kernel's network as they are at one moment.
package netdump

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// tries is how often a list is read at most. A retry is only needed if another process changed the list meanwhile.
const tries = 100

// Whole reads a list with a function of package netlink, again as long as the kernel says that it was changed while it
// was being read: part of it may be missing then, or stand there twice. The error is the function's.
func Whole[T any](list func() ([]T, error)) ([]T, error) {
	all, err := list()
	for try := 1; try < tries && errors.Is(err, netlink.ErrDumpInterrupted); try++ {
		all, err = list()
	}
	return all, err
}
