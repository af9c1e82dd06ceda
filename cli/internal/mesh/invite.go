package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/invite"
	"keelson.dev/cli/internal/plan"
)

// Invite installs or updates the objects that let machines join the mesh. It reports whether machines could join
// before.
func (m *Mesh) Invite(ctx context.Context) (before bool, err error) {
	client, err := m.DynamicClient()
	if err != nil {
		return false, err
	}
	typed, err := m.Client()
	if err != nil {
		return false, err
	}
	if before, err = invite.Invites(ctx, typed); err != nil {
		return false, err
	}
	authority, err := os.ReadFile(m.Layout.PKI("ca.crt"))
	if err != nil {
		return before, fmt.Errorf("reading the mesh's authority: %w", err)
	}
	address, err := m.joinAddress()
	if err != nil {
		return before, err
	}
	left, err := invite.Apply(ctx, client, invite.Input{Server: "https://" + address, CA: authority,
		Settings: plan.NodeSettings{Pod: m.State.Ranges.Pod, Service: m.State.Ranges.Service,
			PodNetwork: m.State.PodNetwork, ServiceProxy: m.State.ServiceProxy, DNS: m.State.DNS,
			Domain: m.State.Domain, VXLAN: m.Layout.Number()}})
	m.sayLeft(left)
	return before, err
}

// JoinCommand creates a token with a limited life and returns the command with which a machine joins.
func (m *Mesh) JoinCommand(ctx context.Context, life time.Duration, description string) (token discovery.Token,
	command string, err error) {
	client, err := m.Client()
	if err != nil {
		return token, "", err
	}
	address, err := m.joinAddress()
	if err != nil {
		return token, "", err
	}
	pins, err := m.pins()
	if err != nil {
		return token, "", err
	}
	if token, err = invite.CreateToken(ctx, client, life, description); err != nil {
		return token, "", err
	}
	return token, invite.JoinCommand(address, token, pins), nil
}

// joinAddress returns the HOST:PORT at which other machines reach the apiserver.
func (m *Mesh) joinAddress() (string, error) {
	if !m.State.Units {
		return "", errors.New("machines join a mesh of keel init; keel up has all of its nodes on one machine")
	}
	if m.State.Endpoint != "" {
		return m.State.Endpoint, nil
	}
	_, advertise, err := m.addresses()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(advertise.String(), strconv.Itoa(m.State.Ports[plan.APIServer])), nil
}

// pins returns the hashes of the authorities that the mesh trusts.
func (m *Mesh) pins() ([]string, error) {
	bundle, err := os.ReadFile(m.Layout.PKI("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the mesh's authority: %w", err)
	}
	pins, err := discovery.PinsOf(bundle)
	if err != nil {
		return nil, err
	}
	if len(pins) == 0 {
		return nil, fmt.Errorf("reading the mesh's authority: %s holds no PEM certificate", m.Layout.PKI("ca.crt"))
	}
	return pins, nil
}
