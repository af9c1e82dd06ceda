package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"keelson.dev/cli/internal/filelock"
	"keelson.dev/kit/subprocess"
)

// supervisorName is the name of the supervisor's record and lock.
const supervisorName = "supervisor"

// interval is the time between two checks of the units: an ended process is restarted within it.
const interval = time.Second

// startLimit is how long a supervisor may take to record itself.
const startLimit = 30 * time.Second

// Run restarts wanted units that have ended, until ctx ends; their processes keep running then. Only one of
// several supervisors does so; the others wait until it ends.
func (u *Units) Run(ctx context.Context, out io.Writer) error {
	if err := os.MkdirAll(string(u.Folder), 0o700); err != nil {
		return fmt.Errorf("making the folder of the units: %w", err)
	}
	unlock, err := filelock.Wait(ctx, u.Path(supervisorName+lockSuffix))
	if err != nil {
		return ending(ctx, err)
	}
	defer unlock()
	self, err := subprocess.Of(subprocess.Command{Name: supervisorName, Path: u.keel}, os.Getpid())
	if err != nil {
		return err
	}
	if err := u.save(supervisorName, record{Wanted: true, Process: self}); err != nil {
		return err
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := u.tend(ctx, out); err != nil && ctx.Err() == nil {
			say(out, "%v", err)
		}
		select {
		case <-ctx.Done():
			return ending(ctx, ctx.Err())
		case <-ticker.C:
		}
	}
}

// say writes a line of the supervisor's log.
func say(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, time.Now().UTC().Format(time.RFC3339)+" "+format+"\n", args...)
}

// ending returns nil if the supervisor was cancelled, which is no failure.
func ending(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// tend checks each unit once.
func (u *Units) tend(ctx context.Context, out io.Writer) error {
	files, err := filepath.Glob(u.Path("*" + unitSuffix))
	if err != nil {
		return fmt.Errorf("listing the units: %w", err)
	}
	failed := bound(u.layout.Log(supervisorName), maxLog)
	for _, file := range files {
		name := filepath.Base(file)
		if err := u.tendOne(ctx, out, name); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
		failed = errors.Join(failed, bound(u.Log(name), maxLog))
	}
	return failed
}

// tendOne starts a wanted unit that has ended, unless another process holds the unit's lock.
func (u *Units) tendOne(ctx context.Context, out io.Writer, name string) error {
	unlock, err := filelock.Try(u.Path(name + lockSuffix))
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	r, err := u.load(name)
	if err != nil || !r.Wanted || r.Process.Alive() {
		return err
	}
	ended := "it has no process"
	if r.Process.PID != 0 {
		ended = fmt.Sprintf("process %d %s", r.Process.PID, r.Process.Ended())
		r.Restarts++
	}
	if err := u.start(ctx, name, &r); err != nil {
		return err
	}
	say(out, "%s: %s; started as process %d", name, ended, r.Process.PID)
	return u.save(name, r)
}

// current reports whether a supervisor runs, of this keel.
func (u *Units) current(supervisor subprocess.Process) bool {
	return supervisor.Alive() && !u.Replaced(supervisor.PID, u.keel)
}

// ensureSupervisor makes sure that a supervisor of this keel runs.
func (u *Units) ensureSupervisor(ctx context.Context) error {
	r, err := u.load(supervisorName)
	if err != nil || u.current(r.Process) {
		return err
	}
	if err := u.stopSupervisor(ctx); err != nil {
		return err
	}
	started, err := subprocess.Start(subprocess.Command{Name: "keel supervise", Path: u.keel,
		Args: []string{"supervise", "--data-dir=" + u.layout.Dir}, Dir: "/", Log: u.layout.Log(supervisorName)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return subprocess.WaitReady(ctx, started, func(context.Context) error {
		r, err := u.load(supervisorName)
		if err == nil && !u.current(r.Process) {
			err = errors.New("it has not begun")
		}
		return err
	})
}

// stopSupervisor stops the running supervisor; the units keep running.
func (u *Units) stopSupervisor(ctx context.Context) error {
	r, err := u.load(supervisorName)
	if err != nil {
		return err
	}
	return subprocess.Stop(ctx, r.Process, stopGrace)
}

// maxLog is the size limit of a log; its previous part is kept in a second file.
const maxLog = 64 << 20

// bound copies a log that has grown beyond a size to a second file and empties it. Lines written between the copy
// and the truncation are lost.
func bound(log string, size int64) error {
	info, err := os.Stat(log)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() <= size {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at a log: %w", err)
	}
	content, err := os.Open(log)
	if err != nil {
		return fmt.Errorf("opening a log: %w", err)
	}
	defer content.Close()
	kept, err := os.OpenFile(strings.TrimSuffix(log, ".log")+".1.log", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keeping a log: %w", err)
	}
	defer kept.Close()
	if _, err := io.Copy(kept, content); err != nil {
		return fmt.Errorf("keeping a log: %w", err)
	}
	// The process appends to the log, so its output continues at the beginning of the file.
	if err := os.Truncate(log, 0); err != nil {
		return fmt.Errorf("emptying a log: %w", err)
	}
	return nil
}
