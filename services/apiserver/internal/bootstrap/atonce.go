package bootstrap

import (
	"errors"

	"keelson.dev/kit/lanes"
)

// writers is how many objects are made at the same time. Each waits for the disk, and those that wait together wait
// once.
const writers = 16

// atOnce calls ensure with each item, which need not be in their order, and returns all errors.
func atOnce[T any](items []T, ensure func(T) error) error {
	errs := make([]error, len(items))
	lanes.Run(writers, len(items), func(i int) int { return i }, func(i int) bool {
		errs[i] = ensure(items[i])
		return true
	})
	return errors.Join(errs...)
}
