package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"keelson.dev/cli/internal/plan"
)

// leaveGrace is how long the program that leaves the store may take to end after SIGTERM.
const leaveGrace = 10 * time.Second

// sharesStore reports whether this machine may share the store with others.
func (m *Mesh) sharesStore(own []string) bool {
	_, err := os.Stat(filepath.Join(m.Layout.APIServer(), "etcd"))
	return m.State.SharesStore() && err == nil && slices.Contains(own, plan.UnitName(plan.APIServer))
}

// leaveStore removes this machine from the members of the store, while its apiserver runs. If no other machine has
// the store, it stays.
func (m *Mesh) leaveStore(ctx context.Context) error {
	return m.step(ctx, "leaving the other machines that have the store, if there are any",
		func(ctx context.Context) error {
			said, err := m.askStore(ctx, "leave")
			if err != nil {
				return fmt.Errorf("%w; with --force this machine is reset all the same, and on another one of the "+
					"control plane keel store remove-member takes it out", err)
			}
			done := struct {
				Peers []string `json:"peers"`
			}{}
			if err := json.Unmarshal(said, &done); err != nil {
				return fmt.Errorf("reading what became of the store: %w", err)
			}
			if len(done.Peers) == 0 {
				return nil
			}
			// With these peers it rejoins the store instead of creating a new one.
			m.State.StorePeers = done.Peers
			return m.State.Save(m.Layout)
		})
}

// retireStore moves a store aside that has left the others, once no process has it open.
func (m *Mesh) retireStore(ctx context.Context) error {
	aside, err := m.askStore(ctx, "retire")
	if err == nil && len(aside) > 0 {
		m.say("    the store as it was is kept as %s", bytes.TrimSpace(aside))
	}
	return err
}

// askStore runs a store command of the apiserver's program and returns its output.
func (m *Mesh) askStore(ctx context.Context, command ...string) ([]byte, error) {
	unit := plan.UnitName(plan.APIServer)
	files, err := m.units().Files([]string{unit})
	if err != nil {
		return nil, err
	}
	folder, _ := plan.UnitOptions(files[unit])
	program := filepath.Join(folder, "keelson-apiserver")
	// The program that has the store open knows it; what lies there may be of another version by now.
	if states, err := m.units().States(ctx, []string{unit}); err == nil && states[unit].PID > 0 {
		program = m.units().Program(states[unit].PID)
	}
	var said, complained bytes.Buffer
	run := exec.CommandContext(ctx, program,
		slices.Concat([]string{"store"}, command, []string{"--data-dir=" + m.Layout.APIServer()})...)
	run.Stdout, run.Stderr = &said, &complained
	run.Cancel, run.WaitDelay = func() error { return run.Process.Signal(syscall.SIGTERM) }, leaveGrace
	if err := run.Run(); err != nil {
		if text := strings.TrimSpace(complained.String()); text != "" {
			return nil, errors.New(text)
		}
		return nil, fmt.Errorf("running %s: %w", run.Path, err)
	}
	return said.Bytes(), nil
}
