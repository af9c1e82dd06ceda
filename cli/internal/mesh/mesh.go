// Package mesh brings a mesh on one machine up and takes it down.
package mesh

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"keelson.dev/cli/internal/node"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// Mesh is a data directory and what is known about its mesh.
type Mesh struct {
	Layout plan.Layout
	State  *state.State
	Out    io.Writer
	// Units runs the units of the mesh; nil means systemd if it runs this machine, and keel itself otherwise.
	Units Units
	// Kubeconfig is the file with whose credentials the API and the daemons are asked; empty means the operator's.
	Kubeconfig string
	// Addresses are the machine's IPv4 addresses; nil means the addresses that the kernel has now.
	Addresses []netip.Addr
}

// Open reads the record of a mesh that `keel up` or `keel init` has made.
func Open(dataDir string, out io.Writer) (*Mesh, error) {
	m, err := OpenMachine(dataDir, out)
	if err != nil {
		return nil, err
	}
	if m.State.Worker() {
		return nil, fmt.Errorf("--data-dir: %s is of a worker of the mesh at %s: ask on the machine of its keel init",
			m.Layout.Dir, m.State.Server)
	}
	return m, nil
}

// OpenMachine reads the record of this machine's part of a mesh, also on a worker.
func OpenMachine(dataDir string, out io.Writer) (*Mesh, error) {
	layout, err := LayoutOf(dataDir)
	if err != nil {
		return nil, err
	}
	recorded, err := state.Load(layout)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--data-dir: %s holds no mesh: start one with keel up", layout.Dir)
	}
	if err != nil {
		return nil, err
	}
	return &Mesh{Layout: layout, State: recorded, Out: out}, nil
}

// LayoutOf makes the data directory's path absolute and resolves links if it exists, so that each directory has
// one mesh.
func LayoutOf(dataDir string) (plan.Layout, error) {
	absolute, err := filepath.Abs(dataDir)
	if err != nil {
		return plan.Layout{}, fmt.Errorf("--data-dir: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(absolute); err == nil {
		absolute = resolved
	}
	layout := plan.Layout{Dir: absolute}
	return layout, layout.Validate()
}

// say prints a line of progress.
func (m *Mesh) say(format string, args ...any) { fmt.Fprintf(m.Out, format+"\n", args...) }

// sayLeft prints the objects that keel installs and has not updated because others have changed them.
func (m *Mesh) sayLeft(names []string) {
	if len(names) > 0 {
		m.say("    left as others have changed it: %s", strings.Join(names, ", "))
	}
}

// Part prints a heading for a part of the command and runs it.
func (m *Mesh) Part(ctx context.Context, what string, do func(context.Context) error) error {
	m.say("==> %s", what)
	return within(ctx, what, do)
}

// step prints what it runs and, at the end, how long that took.
func (m *Mesh) step(ctx context.Context, what string, do func(context.Context) error) error {
	return m.always(what, func() error { return within(ctx, what, do) })
}

// within does nothing if ctx has ended; it adds the step's name to an error that comes after ctx has ended.
func within(ctx context.Context, what string, do func(context.Context) error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: not begun: %w", what, context.Cause(ctx))
	}
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// always is a step that runs even after the deadline.
func (m *Mesh) always(what string, do func() error) error {
	fmt.Fprintf(m.Out, "==> %s ... ", what)
	start := time.Now()
	if err := do(); err != nil {
		fmt.Fprintln(m.Out, "failed")
		return err
	}
	fmt.Fprintf(m.Out, "%.1f s\n", time.Since(start).Seconds())
	return nil
}

// TLSClient returns a configuration with the operator's certificate that trusts only the mesh's CA. The certificate, if
// there is one, and the CA are those of Kubeconfig where that is set.
func (m *Mesh) TLSClient() (*tls.Config, error) {
	if m.Kubeconfig != "" {
		return m.givenTLS()
	}
	if m.State.Worker() {
		// It only asks, over loopback, whether the agent is ready; the agent made the certificate that it shows
		// there in memory.
		return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, nil //nolint:gosec // as said
	}
	pair, err := tls.LoadX509KeyPair(m.Layout.PKI(plan.AdminCertificate+".crt"),
		m.Layout.PKI(plan.AdminCertificate+".key"))
	if err != nil {
		return nil, fmt.Errorf("reading the operator's certificate: %w", err)
	}
	bundle, err := os.ReadFile(m.Layout.PKI("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the CA: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// readiness returns the readiness check of a process.
func (m *Mesh) readiness(client *http.Client, process plan.Process) func(context.Context) error {
	if nodeName, ok := plan.NodeOfContainerd(process.Name); ok {
		return func(ctx context.Context) error { return node.CheckRuntime(ctx, m.Layout.Node(nodeName)) }
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, process.ReadyURL, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s: %s", process.ReadyURL, answer.Status, body)
		}
		return nil
	}
}

// processInput returns the input for the plan of the processes, from the record.
func (m *Mesh) processInput(programs, logLevel string) (plan.ProcessInput, error) {
	bind, advertise, err := m.addresses()
	return plan.ProcessInput{
		DNS: plan.DNSServer(m.State.DNS, m.State.Ranges.Service.IPv4), Domain: m.State.Domain,
		PodNetwork: m.State.PodNetwork, ServiceProxy: m.State.ServiceProxy,
		Layout: m.Layout, Ranges: m.State.Ranges, Ports: m.State.Ports, Nodes: m.State.NodeNames(),
		BindAddress: bind, Advertise: advertise, Programs: programs, LogLevel: logLevel,
		Hosts: !m.State.Units, Server: m.State.Server, VXLAN: m.State.VXLAN,
		StorePeers: m.State.StorePeers, Etcd: m.State.Etcd, Encrypted: m.encrypted(),
	}, err
}

// Network says what keel does for the mesh's network, and what it can wait for.
func (m *Mesh) Network() plan.Network {
	return plan.DecideNetwork(plan.NetworkInput{PodNetwork: m.State.PodNetwork, ServiceProxy: m.State.ServiceProxy,
		Nodes: len(m.State.Nodes)})
}

// SayWhatOthersBring prints which software others have to install before Pods start or Services work.
func (m *Mesh) SayWhatOthersBring(programs string) {
	switch network := m.Network(); {
	case len(m.State.Nodes) == 0 || network.Names:
	case network.PodsStart:
		m.say("    Services have no traffic before another service proxy carries it (--service-proxy=none)")
	default:
		m.say("    Pods start once others have written the configuration of their network (--pod-network=none): for "+
			"each node to %s, for plugins in %s", m.Layout.Node("NODE").CNI("conf"), filepath.Join(programs, "cni"))
	}
}

// ServerURL returns the URL at which this machine's clients reach the apiserver.
func (m *Mesh) ServerURL() string {
	input, err := m.processInput("", "")
	if err != nil {
		return ""
	}
	return input.ServerURL()
}

// StatusAddress returns the address at which a process serves its status.
func (m *Mesh) StatusAddress(process string) string {
	input, err := m.processInput("", "")
	if err != nil {
		return ""
	}
	return input.StatusAddress(process)
}
