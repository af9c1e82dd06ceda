package requestbatch

import (
	"time"

	"keelson.dev/kit/batch"
)

// Limits bound what batches take of the server, beside what bounds each of their requests. Of each total one client may
// have a quarter of what others leave.
type Limits struct {
	// Open is how many batches are answered at a time, UnderWay how many of their requests.
	Open, UnderWay int
	// Reading is the total of bytes of batches that are being read, ReadTime how long one may take to come.
	Reading  int64
	ReadTime time.Duration
	// Ordinary is how many bytes the body of each answer may have, whatever others have. Beyond that, answers that wait
	// to be sent may hold PerBatch bytes in one batch and Answers bytes in all.
	Ordinary, PerBatch, Answers int64
}

// DefaultLimits let all batches together hold 128 MiB of ordinary answers and 64 MiB of large ones, and those of one
// client a quarter of that.
func DefaultLimits() Limits {
	return Limits{
		Open: 64, UnderWay: 4 * batch.MaxItems,
		Reading: 64 << 20, ReadTime: 10 * time.Second,
		Ordinary: 16 << 10, PerBatch: 8 << 20, Answers: 64 << 20,
	}
}

// leastRead is what a batch takes without a body: streams, goroutines and their stacks.
const leastRead = 64 << 10
