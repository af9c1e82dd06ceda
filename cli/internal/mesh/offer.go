package mesh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/invite"
	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
)

// Offer holds what one machine needs to join the control plane.
type Offer struct {
	Token discovery.Token
	Key   invite.Key
	// Command is the command to run on that machine.
	Command string
	// Flags are the flags that the operator has added to the apiserver here; the new machine does not get them.
	Flags []string
}

// Offer creates what one machine needs to join the control plane, with a limited life.
func (m *Mesh) Offer(ctx context.Context, life time.Duration, description string) (o Offer, err error) {
	client, err := m.Client()
	if err != nil {
		return o, err
	}
	address, err := m.joinAddress()
	if err != nil {
		return o, err
	}
	pins, err := m.pins()
	if err != nil {
		return o, err
	}
	bundle, flags, err := m.bundle(ctx)
	if err != nil {
		return o, err
	}
	if o.Token, o.Key, err = invite.Offer(ctx, client, bundle, life, description); err != nil {
		return o, err
	}
	o.Command, o.Flags = invite.ControlPlaneCommand(invite.JoinCommand(address, o.Token, pins), o.Key), flags
	return o, nil
}

// bundle returns what this machine shares with others of the control plane, and the apiserver flags that it does
// not share.
func (m *Mesh) bundle(ctx context.Context) (b invite.Bundle, flags []string, err error) {
	input, err := m.processInput("", "")
	if err != nil {
		return b, nil, err
	}
	if m.State.Etcd != nil {
		return b, nil, fmt.Errorf("the mesh's store is the etcd cluster at %s, and machines of a control plane share "+
			"an embedded one: keel store migrate --to embedded moves it back", m.State.Etcd.At())
	}
	own := input.StoreURL()
	if own == "" {
		return b, nil, fmt.Errorf("the store of this machine listens for no other yet: %s brings it up to date",
			m.Maker())
	}
	if b.Files, err = pki.ReadShared(m.Layout); err != nil {
		return b, nil, err
	}
	b.Stores, b.Endpoint = append([]string{own}, m.State.StorePeers...), m.State.Endpoint
	running, err := m.runningArgs(ctx)
	if err != nil {
		return b, nil, err
	}
	foreign := plan.ForeignFlags(plan.DecideProcesses(input)[0][0].Args, slices.DeleteFunc(running, ofLog))
	if foreign.Encryption == "" {
		return b, foreign.Flags, nil
	}
	b.Encryption, err = os.ReadFile(foreign.Encryption)
	if err != nil {
		return b, nil, fmt.Errorf("reading what of the store is encrypted: %w", err)
	}
	return b, foreign.Flags, nil
}

// ofLog reports whether the argument is the log level, which each run of keel chooses.
func ofLog(arg string) bool { return strings.HasPrefix(arg, "--log-level=") }

// commandLine reads the arguments of a process, without its program.
func commandLine(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading how the apiserver runs: %w", err)
	}
	args := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	return args[1:], nil
}
