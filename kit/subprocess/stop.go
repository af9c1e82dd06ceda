package subprocess

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// killWait is how long the kernel may take for a killed process, which is long only when it hangs in I/O.
const killWait = 10 * time.Second

// Stop asks the process to end and kills it when it has not within the grace period, or when ctx ends. It returns when
// the process is gone; one that was gone before is no error.
func Stop(ctx context.Context, p Process, grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if p.waitGone(ctx, grace) {
		return nil
	}
	return Kill(ctx, p)
}

// Kill ends the process without asking and returns when it is gone.
func Kill(ctx context.Context, p Process) error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.waitGone(context.WithoutCancel(ctx), killWait) {
		return fmt.Errorf("%s (process %d) is still there %v after it was killed", p.Name, p.PID, killWait)
	}
	return nil
}

func (p Process) waitGone(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pollInterval / 5)
	defer ticker.Stop()
	for p.Alive() {
		select {
		case <-ctx.Done():
			return !p.Alive()
		case <-ticker.C:
		}
	}
	return true
}

// Restart starts the command of a process again; the old one must be gone.
func Restart(p Process) (Process, error) {
	if p.Alive() {
		return Process{}, fmt.Errorf("%s still runs as process %d", p.Name, p.PID)
	}
	return Start(p.Command)
}
