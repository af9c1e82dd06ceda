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

// UnfitError says why nothing was done.
type UnfitError struct{ Problems []string }

// Error has one line for each problem.
func (e *UnfitError) Error() string {
	return "nothing was changed:\n  " + strings.Join(e.Problems, "\n  ")
}

// Init makes this machine a mesh whose daemons are units, or brings it up to date, and waits until its node is ready.
// What a run that was cut off has left is taken up where it is.
func Init(ctx context.Context, m *Mesh, options Options) error {
	options.Nodes, options.CgroupDriver = 1, m.cgroupDriver()
	// All that can be known beforehand is looked at before anything is written.
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

// install has the units run, tier by tier, gives their node its images, and waits until that is ready.
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

// settle is the settling of keel init.
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

// nodeName is that of the record, or the one asked for, or the machine's.
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

// activeProcesses are those whose unit runs.
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

// prepareUnits records what the mesh keeps, makes all that its processes find on their start, and renders the units.
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
	// It is recorded before anything of it exists.
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

// renderUnits renders the units of the mesh by the files that are there now.
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
