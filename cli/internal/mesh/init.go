package mesh

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// UnfitError lists the problems because of which nothing was changed.
type UnfitError struct{ Problems []string }

// Error returns a text with one line for each problem.
func (e *UnfitError) Error() string {
	return "nothing was changed:\n  " + strings.Join(e.Problems, "\n  ")
}

// Init makes this machine a mesh whose daemons are units, or updates it, and waits until its node is ready. It
// resumes an interrupted run.
func Init(ctx context.Context, m *Mesh, options Options) error {
	options.Nodes, options.CgroupDriver = 1, m.cgroupDriver()
	// Everything that can be known beforehand is checked before anything is written.
	if err := m.check(ctx, options, m.settle); err != nil {
		return err
	}
	unlock, err := state.Open(m.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	tiers, err := m.prepareUnits(ctx, options, m.settle, m.prepare)
	if err != nil {
		return err
	}
	return m.install(ctx, options, tiers)
}

// install writes and starts the units, tier by tier, imports the images and waits until the node is ready.
func (m *Mesh) install(ctx context.Context, options Options, tiers [][]plan.Unit) error {
	if err := m.convergeUnits(ctx, slices.Concat(tiers...)); err != nil {
		return err
	}
	for i, tier := range tiers {
		if err := m.runUnits(ctx, tier); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		if err := m.importImages(ctx, options); err != nil {
			return err
		}
	}
	if !m.Network().PodsStart {
		return nil // no node is ready without a network
	}
	return m.step(ctx, "waiting for the node "+m.State.Nodes[0].Name, m.awaitNode)
}

// settle is the settling for keel init.
func (m *Mesh) settle(ctx context.Context, options Options) error {
	var err error
	m.State, err = state.Load(m.Layout)
	fresh := errors.Is(err, os.ErrNotExist)
	if err != nil && !fresh {
		return err
	}
	if !fresh && !m.State.Units {
		return fmt.Errorf("--data-dir: %s holds a mesh of keel up: choose another folder", m.Layout.Dir)
	}
	if m.State.Worker() {
		return fmt.Errorf("--data-dir: %s is of a worker of the mesh at %s: keel join brings it up to date",
			m.Layout.Dir, m.State.Server)
	}
	if m.State.ControlPlane {
		return fmt.Errorf("--data-dir: %s is of a machine that has joined the control plane of a mesh: keel join "+
			"brings it up to date", m.Layout.Dir)
	}
	if !fresh {
		if err := m.checkDriver(); err != nil {
			return err
		}
	}
	m.State.Units, m.State.Endpoint = true, cmp.Or(options.Endpoint, m.State.Endpoint)
	if options.NodeName, err = m.nodeName(options.NodeName); err != nil {
		return err
	}
	active, err := m.activeProcesses(ctx, options.NodeName)
	if err != nil {
		return err
	}
	return m.decide(options, active)
}

// nodeName returns the node's name from the record, or else the requested name, or else the machine's host name.
func (m *Mesh) nodeName(asked string) (string, error) {
	if len(m.State.Nodes) > 0 {
		recorded := m.State.Nodes[0].Name
		if asked != "" && asked != recorded {
			return "", fmt.Errorf("--node-name: this data directory has used %s from its start: leave the flag out",
				recorded)
		}
		return recorded, nil
	}
	if asked == "" {
		name, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("reading the host's name: %w", err)
		}
		asked = strings.ToLower(name)
	}
	if problems := validation.IsDNS1123Subdomain(asked); len(problems) > 0 {
		return "", fmt.Errorf("--node-name: %q: %s", asked, problems[0])
	}
	if plan.IsCertificate(asked) {
		return "", fmt.Errorf("--node-name: %q is the name of a daemon's certificate: give another", asked)
	}
	return asked, m.Layout.ValidateNode(asked)
}

// activeProcesses returns the processes whose unit runs.
func (m *Mesh) activeProcesses(ctx context.Context, node string) ([]string, error) {
	var active []string
	states, err := m.units().States(ctx, plan.UnitNames())
	if err != nil {
		return nil, err
	}
	for _, process := range plan.ProcessNames(node) {
		if states[plan.UnitName(process)].Active {
			active = append(active, process)
		}
	}
	return active, nil
}

// prepareUnits records the mesh's settings, makes everything that its processes need at their start, and renders
// the units.
func (m *Mesh) prepareUnits(ctx context.Context, options Options, settle settling, prepare func(Options) error,
) ([][]plan.Unit, error) {
	unlock, err := state.LockMachine(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := settle(ctx, options); err != nil {
		return nil, err
	}
	// The record is written before anything that it describes exists.
	if err := m.State.Save(m.Layout); err != nil {
		return nil, err
	}
	if err := m.claimForUnits(); err != nil {
		return nil, err
	}
	if err := m.step(ctx, "preparing certificates", func(context.Context) error {
		return prepare(options)
	}); err != nil {
		return nil, err
	}
	return m.renderUnits(options.Programs, options.LogLevel)
}

// renderUnits renders the units of the mesh for the present files.
func (m *Mesh) renderUnits(programs, logLevel string) ([][]plan.Unit, error) {
	input, err := m.processInput(programs, logLevel)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, process := range slices.Concat(plan.DecideProcesses(input)...) {
		for _, file := range input.FilesAtStart(process) {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading what %s is started with: %w", process.Name, err)
			}
			sum := sha256.Sum256(content)
			sums[file] = hex.EncodeToString(sum[:])
		}
	}
	return plan.DecideUnits(input, sums), nil
}
