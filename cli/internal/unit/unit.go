// Package unit reads the files and processes of a machine's units, whether systemd or keel itself runs them.
package unit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"keelson.dev/cli/internal/plan"
)

// State is what the one who runs a unit, and the kernel, have of it.
type State struct {
	plan.UnitState
	// PID is the process, 0 without one; Started is when it was started.
	PID     int
	Started time.Time
	// Restarts is how often the process was started again because it had ended.
	Restarts int
}

// Folder is the folder of the files of units.
type Folder string

// Path is the file of a unit.
func (f Folder) Path(name string) string { return filepath.Join(string(f), name) }

// Files reads the files of units. A missing file is left out; for a link it returns "-> " and the target.
func (f Folder) Files(names []string) (map[string]string, error) {
	files := map[string]string{}
	for _, name := range names {
		path := f.Path(name)
		if target, err := os.Readlink(path); err == nil {
			files[name] = "-> " + target
			continue
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a unit: %w", err)
		}
		files[name] = string(content)
	}
	return files, nil
}

// Write writes the file of a unit; a reader sees the old content or the new one, also after a power failure.
func (f Folder) Write(name, content string) error {
	if err := renameio.WriteFile(f.Path(name), []byte(content), 0o644); err != nil {
		return fmt.Errorf("writing the unit %s: %w", name, err)
	}
	return nil
}

// Remove removes the files of units. A missing file is no error.
func (f Folder) Remove(names []string) error {
	var failed error
	for _, name := range names {
		if err := os.Remove(f.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("removing a unit: %w", err))
		}
	}
	return failed
}

// Proc is where the kernel shows processes.
type Proc string

// Revision is what a process was started from. One that has ended has none.
func (p Proc) Revision(pid int) string {
	environment, err := os.ReadFile(p.file(pid, "environ"))
	if err != nil {
		return ""
	}
	for entry := range strings.SplitSeq(string(environment), "\x00") {
		if value, ok := strings.CutPrefix(entry, plan.RevisionVariable+"="); ok {
			return value
		}
	}
	return ""
}

// Program is where the program of a running process can be read, also if its file has been replaced since.
func (p Proc) Program(pid int) string { return p.file(pid, "exe") }

// Replaced reports whether a process runs and the program at that path is another file by now.
func (p Proc) Replaced(pid int, program string) bool {
	running, err := os.Stat(p.Program(pid))
	if err != nil {
		return false
	}
	now, err := os.Stat(program)
	return err == nil && !os.SameFile(running, now)
}

func (p Proc) file(pid int, name string) string {
	return filepath.Join(string(p), strconv.Itoa(pid), name)
}
