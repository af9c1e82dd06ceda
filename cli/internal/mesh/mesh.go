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

// Mesh is a data directory and what is known of it.
type Mesh struct {
	Layout plan.Layout
	State  *state.State
	Out    io.Writer
	// Units is what runs the units of the mesh; nil for what this machine has: systemd, or keel itself without it.
	Units Units
	// Addresses are the machine's IPv4 addresses; nil for those that the kernel has now.
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

// OpenMachine reads the record of what this machine has of a mesh, be it a worker alone.
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

// LayoutOf makes the data directory's path absolute, links resolved where it exists: one directory, one mesh.
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

// sayLeft tells what others have changed of what keel installs, and keel has left alone.
func (m *Mesh) sayLeft(names []string) {
	if len(names) > 0 {
		m.say("    left as others have changed it: %s", strings.Join(names, ", "))
	}
}

// Part heads what is printed of a part of the command, and does it.
func (m *Mesh) Part(ctx context.Context, what string, do func(context.Context) error) error {
	m.say("==> %s", what)
	return within(ctx, what, do)
}

// step prints what is done and, once it is, how long it took.
func (m *Mesh) step(ctx context.Context, what string, do func(context.Context) error) error {
	return m.always(what, func() error { return within(ctx, what, do) })
}

// within does nothing once ctx has ended, and says of what has failed after that what it was part of.
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

// always is a step that is taken even when the time is over.
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

// TLSClient presents the operator's certificate and trusts the mesh's CA alone.
func (m *Mesh) TLSClient() (*tls.Config, error) {
	if m.State.Worker() {
		// Only whether the agent is ready is asked, at loopback; what it shows there it has made in memory.
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

// readiness returns the check of a process.
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

// processInput is what the plan of the processes needs, from the record.
func (m *Mesh) processInput(programs, logLevel string) (plan.ProcessInput, error) {
	bind, advertise, err := m.addresses()
	return plan.ProcessInput{
		DNS: plan.DNSServer(m.State.DNS, m.State.Ranges.Service.IPv4), Domain: m.State.Domain,
		PodNetwork: m.State.PodNetwork, ServiceProxy: m.State.ServiceProxy,
		Layout: m.Layout, Ranges: m.State.Ranges, Ports: m.State.Ports, Nodes: m.State.NodeNames(),
		BindAddress: bind, Advertise: advertise, Programs: programs, LogLevel: logLevel,
		Hosts: !m.State.Units, Server: m.State.Server, VXLAN: m.State.VXLAN,
		StorePeers: m.State.StorePeers, Encrypted: m.encrypted(),
	}, err
}

// Network is what is done of the mesh's network, and what can be waited for.
func (m *Mesh) Network() plan.Network {
	return plan.DecideNetwork(plan.NetworkInput{PodNetwork: m.State.PodNetwork, ServiceProxy: m.State.ServiceProxy,
		Nodes: len(m.State.Nodes)})
}

// SayWhatOthersBring says what Pods, or names, wait for that others install.
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

// ServerURL is where this machine's clients reach the apiserver.
func (m *Mesh) ServerURL() string {
	input, err := m.processInput("", "")
	if err != nil {
		return ""
	}
	return input.ServerURL()
}

// StatusAddress is where a process answers about itself.
func (m *Mesh) StatusAddress(process string) string {
	input, err := m.processInput("", "")
	if err != nil {
		return ""
	}
	return input.StatusAddress(process)
}
