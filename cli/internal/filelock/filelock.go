// Package filelock locks files against other processes. A lock ends with the process that holds it, however that ends.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld says that another process holds a lock.
var ErrHeld = errors.New("another process holds it")

// interval is short compared with the work done under a lock.
const interval = 100 * time.Millisecond

// Try takes the lock of a file, which it makes if need be, or returns ErrHeld at once.
func Try(file string) (unlock func(), err error) {
	handle, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock %s: %w", file, err)
	}
	if err := unix.Flock(int(handle.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		handle.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, fmt.Errorf("taking the lock %s: %w", file, err)
	}
	return func() { handle.Close() }, nil
}

// Wait takes the lock of a file as Try does, once no other holder has it, or returns the error of ctx when that
// ends.
func Wait(ctx context.Context, file string) (unlock func(), err error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		unlock, err := Try(file)
		if !errors.Is(err, ErrHeld) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}
