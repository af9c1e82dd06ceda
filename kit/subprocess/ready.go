package subprocess

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// pollInterval is short against a daemon's start and cheap against a check.
const pollInterval = 100 * time.Millisecond

// tailLines is how much of the log a failure shows.
const tailLines = 15

// FailedError says that a process did not become ready, with what it wrote last.
type FailedError struct {
	Process Process
	// Reason is how it failed, for example "ended with exit status 2".
	Reason string
	Last   []string
}

// Error has the log lines below the sentence and ends with where the log is.
func (e *FailedError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s", e.Process.Name, e.Reason)
	for _, line := range e.Last {
		text.WriteString("\n    " + line)
	}
	fmt.Fprintf(&text, "\n  its log: %s", e.Process.Log)
	return text.String()
}

// WaitReady asks check until it returns nil. It gives up, with a FailedError, when the process ends or ctx does.
func WaitReady(ctx context.Context, p Process, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // an end of ctx says nothing of the process
			last = err
		}
		if !p.Alive() {
			return p.failed(p.Ended())
		}
		select {
		case <-ctx.Done():
			return p.failed(fmt.Sprintf("is not ready: %v", last))
		case <-ticker.C:
		}
	}
}

func (p Process) failed(reason string) error {
	last, err := Tail(p.Log, p.LogOffset, tailLines)
	if err != nil {
		last = []string{err.Error()}
	}
	return &FailedError{Process: p, Reason: reason, Last: last}
}
