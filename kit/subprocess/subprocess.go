// Package subprocess starts daemons as processes of this machine that outlive the one who started them, waits until
// they are ready, and stops them. A process is known by its id and its start time, so that an id that the kernel has
// given to another process in the meantime is never signalled.
package subprocess

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"keelson.dev/kit/namespaces"
)

// ticksPerSecond is the unit in which the kernel shows start times and CPU times of processes, on every architecture.
const ticksPerSecond = 100

// Command is everything that starting a process again needs.
type Command struct {
	// Name is what messages call it.
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args,omitempty"`
	// Env is added to the environment of the one who starts it.
	Env []string `json:"env,omitempty"`
	Dir string   `json:"dir,omitempty"`
	// NetNS, UTSNS and MountNS are the files of the namespaces that it runs in; empty for the starter's own.
	NetNS   string `json:"netns,omitempty"`
	UTSNS   string `json:"utsns,omitempty"`
	MountNS string `json:"mntns,omitempty"`
	// Log takes its output, appended.
	Log string `json:"log"`
}

// Process is one started process, as it is recorded. The zero Process never ran.
type Process struct {
	Command
	PID int `json:"pid,omitempty"`
	// StartTime is when the process began, in the kernel's ticks since the boot that BootID names.
	StartTime uint64 `json:"startTime,omitempty"`
	BootID    string `json:"bootID,omitempty"`
	// Started is the same for people.
	Started time.Time `json:"started,omitzero"`
	// LogOffset is where in Log this run begins.
	LogOffset int64 `json:"logOffset,omitempty"`

	exit *exit
}

// exit is known only to the process that is the parent.
type exit struct {
	done  chan struct{}
	state string // how it ended; valid once done is closed
}

// Start starts the command in a session of its own, with its output in the log file. It returns once the process
// exists; see WaitReady for more.
func Start(command Command) (Process, error) {
	if err := os.MkdirAll(filepath.Dir(command.Log), 0o755); err != nil {
		return Process{}, fmt.Errorf("making the log folder of %s: %w", command.Name, err)
	}
	log, err := os.OpenFile(command.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return Process{}, fmt.Errorf("opening the log of %s: %w", command.Name, err)
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return Process{}, fmt.Errorf("reading the size of %s: %w", command.Log, err)
	}

	child := exec.Command(command.Path, command.Args...)
	child.Env = append(os.Environ(), command.Env...)
	child.Dir, child.Stdout, child.Stderr = command.Dir, log, log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	inside := namespaces.Files{Net: command.NetNS, UTS: command.UTSNS, Mount: command.MountNS}
	if err := inside.Do(child.Start); err != nil {
		return Process{}, fmt.Errorf("starting %s: %w", command.Name, err)
	}
	// The child stays readable in /proc until the goroutine below reaps it.
	identity, err := identify(child.Process.Pid)
	if err != nil {
		return Process{}, errors.Join(fmt.Errorf("identifying %s: %w", command.Name, err), child.Process.Kill(),
			child.Wait())
	}
	ended := &exit{done: make(chan struct{})}
	go func() {
		_ = child.Wait() // the state says more than the error
		ended.state = child.ProcessState.String()
		close(ended.done)
	}()
	return Process{
		Command: command, PID: child.Process.Pid, StartTime: identity.startTime, BootID: identity.bootID,
		Started: time.Now().UTC().Truncate(time.Second), LogOffset: info.Size(), exit: ended,
	}, nil
}

// Of is the record of a process that runs a command already, whichever process has started it.
func Of(command Command, pid int) (Process, error) {
	identity, err := identify(pid)
	if err != nil {
		return Process{}, fmt.Errorf("identifying %s: %w", command.Name, err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return Process{}, fmt.Errorf("reading the clock: %w", err)
	}
	age := time.Duration(now.Nano()) - time.Duration(identity.startTime)*(time.Second/ticksPerSecond)
	return Process{Command: command, PID: pid, StartTime: identity.startTime, BootID: identity.bootID,
		Started: time.Now().Add(-age).UTC().Truncate(time.Second)}, nil
}

// Alive reports whether the process still runs. A dead process whose parent has not collected it counts as dead.
func (p Process) Alive() bool {
	if p.PID <= 0 {
		return false
	}
	now, err := identify(p.PID)
	return err == nil && !now.dead && now.startTime == p.StartTime && now.bootID == p.BootID
}

// Outdated reports whether the process runs and the program at its path is another file by now. A build that changes
// nothing leaves the file, but not its time.
func (p Process) Outdated() bool {
	running, err := os.Stat(fmt.Sprintf("/proc/%d/exe", p.PID))
	if err != nil || !p.Alive() {
		return false
	}
	program, err := os.Stat(p.Path)
	return err == nil && !os.SameFile(running, program)
}

// Ended says how the process ended. Only its parent knows the exit status.
func (p Process) Ended() string {
	if p.exit == nil {
		return "ended"
	}
	<-p.exit.done
	return "ended with " + p.exit.state
}

// Signal sends a signal to the process, and to no other that has its id now. A process that is gone is no error.
func (p Process) Signal(signal syscall.Signal) error {
	if p.PID <= 0 {
		return nil
	}
	// The handle is taken before the check: if the id is reused between the two, the handle is of the one that is gone.
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return fmt.Errorf("finding %s: %w", p.Name, err)
	}
	defer func() { _ = handle.Release() }()
	if !p.Alive() {
		return nil
	}
	if err := handle.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) &&
		!errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sending %v to %s (process %d): %w", signal, p.Name, p.PID, err)
	}
	return nil
}
