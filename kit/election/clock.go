package election

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that cannot be set and that goes on while the machine sleeps, which Go's own monotonic clock
// does not.
func sinceBoot() time.Duration {
	var t unix.Timespec
	// CLOCK_BOOTTIME is in every kernel since 2.6.39: it cannot fail.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano())
}
