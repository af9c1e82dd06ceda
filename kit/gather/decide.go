package gather

import "time"

const (
	// room is the number of bytes that one read takes at most.
	room = 64 << 10
	// much is the number of bytes that are worth a wake-up.
	much = room / 2
)

// paced reports whether to wait before the next read, so that more data gathers: the last read got little, soon
// after the one before it. Bulk data, and data on a connection that was quiet for longer, is read as it comes.
func paced(read int, gap, pause time.Duration) bool { return read < much && gap <= pause+pause/2 }
