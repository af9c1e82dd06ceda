package mesh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/programs"
	"keelson.dev/cli/internal/upgrade"
)

// replaceable is a daemon of this machine.
type replaceable struct {
	name string
	unit plan.Unit
	// kept are the programs from before, staged those that are to be moved to the place of the installed one.
	kept, staged programs.Shelf
	record       upgrade.Record
	// wanted is the build to go to, which lies in source unless it is kept.
	wanted upgrade.Build
	source string
	// log is what the daemon has said since this run started it.
	log logEnd
}

// program is the file name of a daemon's program.
func (d *replaceable) program() string { return "keelson-" + d.name }

// folder is the folder of the program that the unit starts.
func (d *replaceable) folder() string { return filepath.Dir(d.unit.Path) }

// find looks for the daemons that are asked for, by their units.
func (u *upgrading) find(ctx context.Context) error {
	files, err := u.units().Files(plan.UnitNames())
	if err != nil {
		return err
	}
	input, err := u.processInput("", "")
	if err != nil {
		return err
	}
	for _, process := range slices.Concat(plan.DecideProcesses(input)...) {
		if _, runtime := plan.NodeOfContainerd(process.Name); runtime {
			continue // which keel init brings up to date
		}
		name := process.Name
		if _, agent := plan.NodeOfAgent(name); agent {
			name = upgrade.Nodeagent
		}
		unit := plan.Unit{Name: plan.UnitName(process.Name), Process: process}
		content, there := files[unit.Name]
		folder, _ := plan.UnitOptions(content)
		if !u.askedFor(name) || !there || !plan.OwnsUnit(u.Layout, content) || folder == "" {
			continue
		}
		d := &replaceable{name: name, unit: unit}
		d.unit.Path = filepath.Join(folder, d.program())
		d.kept = programs.Shelf{Dir: u.Layout.Upgrade(), Prefix: d.program() + "-"}
		d.staged = programs.Shelf{Dir: folder, Prefix: "." + d.program() + "-"}
		if d.record, err = u.load(d); err != nil {
			return err
		}
		u.daemons = append(u.daemons, d)
	}
	for _, name := range u.Asked {
		if !slices.ContainsFunc(u.daemons, func(d *replaceable) bool { return d.name == name }) {
			return u.missing(name)
		}
	}
	if len(u.daemons) == 0 {
		return fmt.Errorf("this machine has no units of the mesh: %s makes them", u.Maker())
	}
	return ctx.Err()
}

// recordFile is where the record of a daemon lies.
func (u *upgrading) recordFile(d *replaceable) string {
	return filepath.Join(u.Layout.Upgrade(), d.name+".json")
}

// load reads the record of a daemon.
func (u *upgrading) load(d *replaceable) (record upgrade.Record, err error) {
	file := u.recordFile(d)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return record, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &record)
	}
	if err != nil {
		return record, fmt.Errorf("reading %s: %w", file, err)
	}
	return record, nil
}

// save writes the record of a daemon. What it says holds also after a power failure.
func (u *upgrading) save(d *replaceable, record upgrade.Record) error {
	content, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("rendering the record of %s: %w", d.name, err)
	}
	file := u.recordFile(d)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("making the folder of records: %w", err)
	}
	if err := renameio.WriteFile(file, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the record of %s: %w", d.name, err)
	}
	if err := programs.SyncFolder(filepath.Dir(file)); err != nil {
		return err
	}
	d.record = record
	return nil
}

// build examines a program of a daemon.
func (u *upgrading) build(ctx context.Context, d *replaceable, file string) (upgrade.Build, error) {
	sum, err := u.sums.Of(file)
	if err != nil {
		return upgrade.Build{}, err
	}
	answer, known := u.versions[sum]
	if !known {
		answer.version, answer.err = programs.Version(ctx, file, d.program())
		if ctx.Err() == nil {
			u.versions[sum] = answer
		}
	}
	return upgrade.Build{Version: answer.version, Sum: sum}, answer.err
}

// versionAnswer is what a program answered when it was asked for its version.
type versionAnswer struct {
	version string
	err     error
}

// observe returns what lies on the disk and runs.
func (u *upgrading) observe(ctx context.Context, d *replaceable) (in upgrade.Input, err error) {
	in = upgrade.Input{Record: d.record, Wanted: d.wanted}
	// A program that says no version may be what is to be replaced.
	if in.Installed, err = u.build(ctx, d, d.unit.Path); in.Installed.Sum == "" && !errors.Is(err, fs.ErrNotExist) {
		return in, err
	}
	pid, err := u.pid(ctx, d)
	if err != nil {
		return in, err
	}
	if pid > 0 {
		in.Running, _ = u.build(ctx, d, u.units().Program(pid)) // it may have ended meanwhile
	}
	if in.Kept, err = d.kept.Sums(); err != nil {
		return in, err
	}
	in.Staged, err = d.staged.Sums()
	return in, err
}

// pid returns the process of a daemon; 0 if it does not run.
func (u *upgrading) pid(ctx context.Context, d *replaceable) (int, error) {
	states, err := u.units().States(ctx, []string{d.unit.Name})
	return states[d.unit.Name].PID, err
}
