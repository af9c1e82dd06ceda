package containerd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// listShims returns the shims that serve the containers of CRI of the containerd which listens at the endpoint.
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
			continue // the pattern lets names through that only begin with a digit
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

// endShim asks a shim to end, whatever it waits for: it takes its socket with it. One that was asked before and is
// still there is killed.
func (c *Client) endShim(s shim) error {
	process, err := os.FindProcess(s.pid)
	if err != nil {
		return fmt.Errorf("finding the shim of %s: %w", s.id, err)
	}
	defer process.Release() //nolint:errcheck // there is nothing to be lost
	// The process that was found is the shim only if it is still there after it was found.
	if id, ok := shimOf(commandLine(s.pid), s.endpoint); !ok || id != s.id {
		return nil
	}
	signal := syscall.SIGTERM
	if c.asked[s] {
		signal = syscall.SIGKILL
	}
	c.asked[s] = true
	if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending the shim of %s: %w", s.id, err)
	}
	return nil
}
