package mesh

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/kit/subprocess"
)

// wantedCertificates returns the certificates that keel makes for the mesh.
func (m *Mesh) wantedCertificates() ([]plan.Certificate, error) {
	addresses, err := m.machineAddresses()
	if err != nil {
		return nil, err
	}
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host's name: %w", err)
	}
	return plan.DecidePKI(plan.PKIInput{
		Addresses: addresses, HostName: name, Service: m.State.Ranges.Service.IPv4, Domain: m.State.Domain,
		Nodes: m.State.NodeNames(), Between: m.State.Ranges.Nodes.IPv4, Store: m.State.Ports[plan.StorePort] != 0,
		Endpoint: m.State.Endpoint,
	}), nil
}

// Certificates reports on every certificate of the mesh on this machine. It reads files only, so it also works
// while nothing runs.
func (m *Mesh) Certificates(now time.Time) ([]plan.CertificateReport, error) {
	var files []plan.CertificateFile
	if m.State.Worker() {
		for _, node := range m.State.NodeNames() {
			files = append(files, plan.WorkerCertificateFiles(node)...)
		}
	} else {
		wanted, err := m.wantedCertificates()
		if err != nil {
			return nil, err
		}
		files = plan.CertificateFiles(wanted)
	}
	return plan.ReportCertificates(files, pki.Read(m.Layout, files), now), nil
}

// Renewal holds the arguments of `keel certs renew`.
type Renewal struct {
	// Names are the certificates' file names without the extension; empty means all certificates.
	Names []string
	// NewKeys gives each certificate a new key.
	NewKeys bool
}

// Renew renews certificates of an opened mesh, due or not, and restarts the running processes that read one of
// them when they started. It needs no running process, and no valid certificate but the authority's. keel init or
// keel up completes an interrupted run; so does the next run, except for a process that the interrupted run had
// stopped.
func Renew(ctx context.Context, m *Mesh, renewal Renewal) error {
	if m.State.Worker() {
		return fmt.Errorf("--data-dir: %s is of a worker, whose agent renews its certificates itself; if they have "+
			"expired, keel join with the mesh's address and a token gets new ones: keel token create "+
			"--print-join-command on the machine of keel init prints the line", m.Layout.Dir)
	}
	unlock, err := m.lockKeys()
	if err != nil {
		return err
	}
	defer unlock()
	wanted, err := m.wantedCertificates()
	if err != nil {
		return err
	}
	chosen, err := plan.ChooseCertificates(wanted, renewal.Names)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := m.step(ctx, fmt.Sprintf("making %d certificates anew", len(chosen)), func(context.Context) error {
		if err := pki.Renew(m.Layout, chosen, renewal.NewKeys, time.Now()); err != nil {
			return err
		}
		return m.preparePKI()
	}); err != nil {
		return err
	}
	err = m.restart(ctx, begun)
	if err == nil && slices.ContainsFunc(chosen, isAdmin) {
		m.say("    copies of %s elsewhere have the certificate of before: copy it again",
			m.Layout.Kubeconfig(plan.AdminCertificate))
	}
	return err
}

// lockKeys locks the mesh's keys against every other keel, and then reads the record.
func (m *Mesh) lockKeys() (unlock func(), err error) {
	if m.State.Units && os.Geteuid() != 0 {
		return nil, errors.New("root is needed to read the keys of the mesh: run keel as root")
	}
	if unlock, err = state.Open(m.Layout); err != nil {
		return nil, err
	}
	if m.State, err = state.Load(m.Layout); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// restart restarts the running processes whose start files have been written since.
func (m *Mesh) restart(ctx context.Context, begun time.Time) error {
	if m.State.Units {
		return m.restartUnits(ctx)
	}
	return m.restartProcesses(ctx, begun)
}

func isAdmin(certificate plan.Certificate) bool { return certificate.File == plan.AdminCertificate }

// restartUnits updates the existing units for the new certificates and restarts those that run. They keep their
// programs and log level. Stopped units stay stopped: they read their files when they start.
func (m *Mesh) restartUnits(ctx context.Context) error {
	own, err := m.ownUnits()
	if err != nil {
		return err
	}
	files, err := m.units().Files(own)
	if err != nil {
		return err
	}
	programs, level := plan.UnitOptions(files[plan.UnitName(plan.APIServer)])
	if programs == "" || level == "" {
		m.say("    nothing was started anew: %s is not there, and keel init makes it",
			plan.UnitName(plan.APIServer))
		return nil
	}
	tiers, err := m.renderUnits(programs, level)
	if err != nil {
		return err
	}
	absent := func(unit plan.Unit) bool { return !slices.Contains(own, unit.Name) }
	there := slices.DeleteFunc(slices.Concat(tiers...), absent)
	changes, err := m.unitChanges(ctx, there)
	if err != nil {
		return err
	}
	changes.Enable = nil
	if err := m.applyChanges(ctx, changes); err != nil {
		return err
	}
	states, err := m.unitStates(ctx, there)
	if err != nil {
		return err
	}
	// Without an apiserver no process gets ready.
	wait := states[plan.UnitName(plan.APIServer)].Active
	for _, tier := range tiers {
		running := slices.DeleteFunc(tier, func(unit plan.Unit) bool { return !states[unit.Name].Active })
		if len(running) == 0 {
			continue
		}
		if err := m.startUnits(ctx, running, wait); err != nil {
			return err
		}
	}
	return nil
}

// clockGrain is how far the modification time of a file may lag behind the clock.
const clockGrain = 50 * time.Millisecond

// restartProcesses restarts the running processes of keel up whose start files were written since this renewal
// began, or after the process started, as by an interrupted renewal.
func (m *Mesh) restartProcesses(ctx context.Context, begun time.Time) error {
	input, err := m.processInput("", "")
	if err != nil {
		return err
	}
	server, _ := m.State.Find(plan.APIServer)
	wait := server.Alive() // without an apiserver no process gets ready
	for _, tier := range plan.DecideProcesses(input) {
		var old []plan.Process
		var names []string
		for _, process := range tier {
			recorded, _ := m.State.Find(process.Name)
			files := input.FilesAtStart(process)
			if recorded.Alive() && (anyNewer(files, begun.Add(-clockGrain)) || olderThan(recorded, files)) {
				old, names = append(old, process), append(names, process.Name)
			}
		}
		if len(old) == 0 {
			continue
		}
		if err := m.step(ctx, "starting anew "+strings.Join(names, ", "), func(ctx context.Context) error {
			return m.restartAll(ctx, old, wait)
		}); err != nil {
			return err
		}
	}
	return nil
}

// anyNewer reports whether one of the files was written after that moment.
func anyNewer(files []string, moment time.Time) bool {
	return slices.ContainsFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.ModTime().After(moment)
	})
}

// olderThan reports whether a process started before one of the files was written. The start time is known to the
// second, and the process may have read a file that was written in that second.
func olderThan(process subprocess.Process, files []string) bool {
	return anyNewer(files, process.Started.Add(time.Second))
}

// withOldCertificates lists the processes that run with certificates older than those on disk.
func (m *Mesh) withOldCertificates(processes []plan.Process) (names []string) {
	input, err := m.processInput("", "")
	if err != nil {
		return nil
	}
	for _, process := range processes {
		recorded, _ := m.State.Find(process.Name)
		if recorded.Alive() && olderThan(recorded, input.FilesAtStart(process)) {
			names = append(names, process.Name)
		}
	}
	return names
}

func (m *Mesh) restartAll(ctx context.Context, processes []plan.Process, wait bool) error {
	for _, process := range processes {
		recorded, _ := m.State.Find(process.Name)
		if err := subprocess.Stop(ctx, recorded, daemonGrace); err != nil {
			return err
		}
		restarted, err := subprocess.Restart(recorded)
		if err != nil {
			return err
		}
		m.State.Put(restarted)
		if err := m.State.Save(m.Layout); err != nil {
			return err
		}
	}
	if !wait {
		return nil
	}
	return awaitTier(m, processes, func(client *http.Client, process plan.Process) error {
		recorded, _ := m.State.Find(process.Name)
		return subprocess.WaitReady(ctx, recorded, m.readiness(client, process))
	})
}
