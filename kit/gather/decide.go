package gather

import "time"

const (
	// room is how much one read takes.
	room = 64 << 10
	// much is how many bytes are worth to be woken up for.
	much = room / 2
)

// paced reports whether to wait before the next read, so that more gathers: the last read got little, soon after the
// one before it. Whatever comes on a connection that was quiet for longer is read as it comes, and so is bulk.
func paced(read int, gap, pause time.Duration) bool { return read < much && gap <= pause+pause/2 }
