package mesh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"keelson.dev/cli/internal/clusterdns"
	"keelson.dev/cli/internal/plan"
)

// HasDNS reports whether keel installs CoreDNS for the mesh, which needs a node.
func (m *Mesh) HasDNS() bool { return m.State.DNS == plan.CoreDNS && len(m.State.Nodes) > 0 }

// InstallDNS installs or updates cluster DNS.
func (m *Mesh) InstallDNS(ctx context.Context) error {
	client, err := m.DynamicClient()
	if err != nil {
		return err
	}
	in := clusterdns.Input{Address: plan.DNSAddress(m.State.Ranges.Service.IPv4), Domain: m.State.Domain,
		Nodes: len(m.State.Nodes)}
	for file, text := range map[string]*string{
		"/etc/resolv.conf": &in.Resolver, "/run/systemd/resolve/resolv.conf": &in.Upstream,
	} {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading whom this machine asks for names: %w", err)
		}
		*text = string(content)
	}
	left, err := clusterdns.Apply(ctx, client, in)
	if err != nil {
		return err
	}
	m.sayLeft(left)
	if !in.Forwards() {
		m.say("    Pods resolve names of the cluster alone: /etc/resolv.conf names no server beyond this machine")
	}
	return nil
}
