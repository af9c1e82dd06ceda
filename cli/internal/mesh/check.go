package mesh

import (
	"context"
	"errors"
	"os"
	"strings"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/node"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/cli/internal/systemd"
)

// Findings are the results of examining the machine, one sentence each.
type Findings struct {
	// Problems prevent the mesh from running here; with Warnings it runs, but worse.
	Problems, Warnings []string
}

// settling reads the record and decides, in memory, the settings that the mesh keeps from its first run on.
type settling func(context.Context, Options) error

// check returns an error with the problems that prevent the mesh from running here, prints the warnings, and
// changes nothing.
func (m *Mesh) check(ctx context.Context, options Options, settle settling) error {
	found := m.findings(ctx, options, settle)
	if len(found.Problems) > 0 {
		return &UnfitError{Problems: found.Problems}
	}
	for _, warning := range found.Warnings {
		m.say("    %s", warning)
	}
	return nil
}

// findings examines everything that can be known beforehand.
func (m *Mesh) findings(ctx context.Context, options Options, settle settling) (found Findings) {
	note := func(err error) {
		if err != nil {
			found.Problems = append(found.Problems, strings.Split(err.Error(), "\n")...)
		}
	}
	if !options.Children {
		note(plan.CheckUnitPath("--data-dir", m.Layout.Dir))
		note(plan.CheckUnitPath("--programs", options.Programs))
	}
	machine, err := m.look(options)
	note(err)
	found.Problems = append(found.Problems, plan.MachineProblems(machine)...)
	archives, err := node.Archives(options.Images)
	note(err)
	note(state.Check(m.Layout))
	// Ports and ranges cannot be checked if systemd cannot be queried.
	if options.Children || machine.Systemctl || !machine.Systemd {
		note(settle(ctx, options))
	}
	kept := m.State
	if kept == nil {
		kept = &state.State{}
	}
	machine.Disk.Archives = unstored(archives, kept)
	network, proxy := kept.PodNetwork, kept.ServiceProxy
	found.Problems = append(found.Problems, machine.Disk.Problems()...)
	found.Problems = append(found.Problems, machine.ModuleProblems(network, proxy)...)
	found.Warnings = append(plan.MachineWarnings(machine), machine.ModuleWarnings(network, proxy)...)
	return found
}

// unstored returns the size of the archives, or 0 if a node has already imported one.
func unstored(archives []string, kept *state.State) (size uint64) {
	for _, n := range kept.Nodes {
		if len(n.Images) > 0 {
			return 0
		}
	}
	for _, archive := range archives {
		if info, err := os.Stat(archive); err == nil {
			size += uint64(info.Size())
		}
	}
	return size
}

// look examines the machine.
func (m *Mesh) look(options Options) (plan.Machine, error) {
	machine := plan.Machine{Root: os.Geteuid() == 0, Systemd: m.underSystemd(), Systemctl: systemd.Installed(),
		Worker: options.worker(), Children: options.Children, Programs: options.Programs,
		MissingPrograms: missingPrograms(options), ForeignUnits: map[string]string{}, Clock: host.Clock(),
		Swap: host.Swap(), Modules: host.Modules(plan.ModuleNames()), Modprobe: host.Modprobe()}
	if !systemd.Runs() { // a test double or keel itself runs the units
		machine.Systemctl = machine.Systemd
	}
	var failed error
	note := func(err error) { failed = errors.Join(failed, err) }
	var err error
	machine.Cgroups, err = host.Cgroups()
	note(err)
	machine.Disk, err = host.Disk(m.Layout.Dir)
	note(err)
	machine.Disk.Shared = options.Children
	addresses, err := m.kernelAddresses()
	note(err)
	machine.Addressed = len(addresses) > 0
	_, err = os.Stat("/etc/hosts")
	machine.HostsFile = err == nil
	if options.Children {
		return machine, failed
	}
	files, err := m.units().Files(plan.UnitNames())
	note(err)
	for name, content := range files {
		if !plan.OwnsUnit(m.Layout, content) {
			machine.ForeignUnits[name], _, _ = strings.Cut(content, "\n")
		}
	}
	return machine, failed
}
