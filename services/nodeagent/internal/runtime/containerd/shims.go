package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// listShims returns the shims that serve CRI's containers for the containerd that listens at the endpoint.
func listShims(endpoint string) ([]shim, error) {
	if endpoint == "" {
		return nil, nil
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("listing the shims: %w", err)
	}
	var out []shim
	for _, process := range processes {
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			continue // the pattern also matches names that only begin with a digit
		}
		if id, ok := shimOf(commandLine(pid), endpoint); ok {
			out = append(out, shim{pid: pid, id: id, endpoint: endpoint})
		}
	}
	return out, nil
}

// commandLine returns the words of a process's command; none if it has ended.
func commandLine(pid int) []string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
}

// A shim that was asked to end is killed if it still runs after shimGrace.
const (
	shimGrace = 2 * time.Second
	shimLook  = 50 * time.Millisecond
)

// endShims sends shims SIGTERM and kills those that do not end: a shim that ends on SIGTERM also removes its
// socket. It returns when all are gone, or were killed.
func endShims(ctx context.Context, shims []shim) error {
	if len(shims) == 0 {
		return nil
	}
	problems := signalAll(shims, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, shimGrace)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, shimLook, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(shims, shim.alive), nil
	})
	return errors.Join(append(problems, signalAll(shims, syscall.SIGKILL)...)...)
}

// signalAll sends a signal to the shims that still run.
func signalAll(shims []shim, signal syscall.Signal) (problems []error) {
	for _, s := range shims {
		problems = append(problems, s.signal(signal))
	}
	return problems
}

// signal sends a signal to the shim if it still runs.
func (s shim) signal(signal syscall.Signal) error {
	process, err := os.FindProcess(s.pid)
	if err != nil {
		return fmt.Errorf("finding the shim of %s: %w", s.id, err)
	}
	defer process.Release() //nolint:errcheck // there is nothing to be lost
	// The process is the shim only if the shim is still alive after FindProcess.
	if !s.alive() {
		return nil
	}
	if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending the shim of %s: %w", s.id, err)
	}
	return nil
}

// alive reports whether the process is still this shim.
func (s shim) alive() bool {
	id, ok := shimOf(commandLine(s.pid), s.endpoint)
	return ok && id == s.id
}
