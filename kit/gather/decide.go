package gather

import "time"

const (
	// room is how much one read takes.
	room = 64 << 10
	// much is how many bytes are worth to be woken up for.
	much = room / 2
)

// paced says whether what comes next is left to gather: what there was is little, and has come soon after what was
// before it. Of a connection that is quiet for longer everything is read as it comes, and so is what comes in bulk.
func paced(read int, gap, pause time.Duration) bool { return read < much && gap <= pause+pause/2 }
