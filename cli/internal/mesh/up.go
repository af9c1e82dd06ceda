package mesh

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// Up starts the missing processes of the mesh and waits until all are ready. If it fails, the started processes
// keep running.
func Up(ctx context.Context, m *Mesh, options Options) error {
	unlock, err := state.Open(m.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	if m.State, err = state.Load(m.Layout); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fresh := err != nil
	if m.State.Units {
		return m.ofUnits()
	}
	if options.Nodes, err = nodeCount(fresh, len(m.State.Nodes), options.Nodes); err != nil {
		return err
	}
	if err := checkPrograms(options); err != nil {
		return err
	}
	tiers, err := m.prepareAndStart(ctx, options)
	if err != nil {
		return err
	}
	if err := m.startTier(ctx, tiers[1], options); err != nil {
		return err
	}
	if old := m.outdated(); len(old) > 0 {
		m.say("    built anew since their start: %s (keel down and keel up renew them)", strings.Join(old, ", "))
	}
	if old := m.withOldCertificates(slices.Concat(tiers...)); len(old) > 0 {
		m.say("    their certificates were made anew since their start: %s (keel certs renew starts them anew)",
			strings.Join(old, ", "))
	}
	return nil
}

// ofUnits returns the error that units run the mesh, so that keel up and keel down leave it alone.
func (m *Mesh) ofUnits() error {
	if m.State.Worker() {
		return fmt.Errorf("--data-dir: %s runs a worker in %s: keel join brings it up to date, keel reset ends it",
			m.units().Name(), m.Layout.Dir)
	}
	return fmt.Errorf("--data-dir: %s runs the mesh in %s: keel init brings it up to date, keel reset ends it",
		m.units().Name(), m.Layout.Dir)
}

// running returns the names of the live processes that keel itself has started.
func (m *Mesh) running() []string {
	var names []string
	for _, process := range m.State.Processes {
		if process.Alive() {
			names = append(names, process.Name)
		}
	}
	return names
}

// outdated lists the running processes whose program has been replaced since they were started.
func (m *Mesh) outdated() []string {
	var names []string
	for _, process := range m.State.Processes {
		if process.Outdated() {
			names = append(names, process.Name)
		}
	}
	return names
}

// prepareAndStart decides ranges, ports and certificates and starts the first tier. It locks the machine against
// other meshes meanwhile, because a port is only taken once its process listens.
func (m *Mesh) prepareAndStart(ctx context.Context, options Options) ([][]plan.Process, error) {
	unlock, err := state.LockMachine(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if options.Nodes > 0 && os.Geteuid() != 0 {
		return nil, errors.New(
			"running containers needs root: run keel as root, or with --nodes 0 for the control plane alone")
	}
	if err := m.decide(options, m.running()); err != nil {
		return nil, err
	}
	// The record is written before anything that it describes exists.
	if err := m.State.Save(m.Layout); err != nil {
		return nil, err
	}
	if err := m.step(ctx, "preparing certificates and networks", func(context.Context) error {
		return m.prepare(options)
	}); err != nil {
		return nil, err
	}
	input, err := m.processInput(options.Programs, options.LogLevel)
	if err != nil {
		return nil, err
	}
	input.SharedDisk = true
	tiers := plan.DecideProcesses(input)
	return tiers, m.startTier(ctx, tiers[0], options)
}

// prepare makes the files and networks that the processes need at their start.
func (m *Mesh) prepare(options Options) error {
	if err := m.preparePKI(); err != nil {
		return err
	}
	if len(m.State.Nodes) == 0 {
		return nil
	}
	return m.prepareNodes(options)
}

func (m *Mesh) preparePKI() error {
	certificates, err := m.wantedCertificates()
	if err != nil {
		return err
	}
	if _, err := pki.Ensure(m.Layout, certificates, time.Now()); err != nil {
		return err
	}
	input, err := m.processInput("", "")
	if err != nil {
		return err
	}
	for _, certificate := range certificates {
		if !certificate.HasKubeconfig() {
			continue
		}
		server := input.ServerURL()
		if index := slices.Index(input.Nodes, certificate.File); index >= 0 {
			server = input.NodeServerURL(index)
		}
		if err := pki.EnsureKubeconfig(m.Layout, certificate.File, server); err != nil {
			return err
		}
	}
	return nil
}

// httpClient returns a client for the daemons; it uses a new connection for each request, so that it notices a
// restart at once.
func (m *Mesh) httpClient() (*http.Client, error) {
	config, err := m.TLSClient()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}, nil
}

// controlPlanePrograms and nodePrograms are the programs that a mesh runs, in the programs folder.
var (
	controlPlanePrograms = []string{"keelson-apiserver", "keelson-scheduler", "keelson-workload-controllers",
		"keelson-podgc"}
	nodePrograms = []string{"keelson-nodeagent", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "cni/bridge",
		"cni/host-local", "cni/loopback", "cni/" + plan.HostPortPlugin}
)

// missingPrograms lists the programs that a half-built checkout lacks.
func missingPrograms(options Options) []string {
	var programs []string
	if !options.worker() {
		programs = controlPlanePrograms
	}
	if options.Nodes > 0 {
		programs = slices.Concat(programs, nodePrograms)
	}
	var missing []string
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(options.Programs, program)); err != nil {
			missing = append(missing, program)
		}
	}
	return missing
}

// checkPrograms returns an early error if a half-built checkout lacks a program.
func checkPrograms(options Options) error {
	if missing := missingPrograms(options); len(missing) > 0 {
		return fmt.Errorf("--programs: %s is missing in %s: build it with make build", missing[0], options.Programs)
	}
	return nil
}
