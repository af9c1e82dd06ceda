package mesh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/invite"
	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// controlPlane is a machine that joins the control plane of a mesh: it finds the mesh as a worker does and runs
// what a first machine runs.
type controlPlane struct {
	*worker
	// bundle holds what the control plane shares, once the mesh has sent it.
	bundle *invite.Bundle
}

// joinControlPlane adds this machine to a mesh's control plane, with an apiserver and a copy of the store, or
// updates it, and waits until the copy is a member of the store and the node is ready. It resumes an interrupted
// run.
func joinControlPlane(ctx context.Context, m *Mesh, options Options) error {
	asked := *options.Join
	asked.ControlPlane = true
	options.Join = &asked
	c := &controlPlane{worker: &worker{Mesh: m}}
	if err := m.check(ctx, options, c.settle); err != nil {
		return err
	}
	unlock, err := state.Open(m.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	tiers, err := m.prepareUnits(ctx, options, c.settle, c.prepare)
	if err != nil {
		return err
	}
	if err := m.install(ctx, options, tiers); err != nil {
		return err
	}
	if c.bundle == nil {
		return nil
	}
	return m.step(ctx, "taking back what was to join by", func(ctx context.Context) error {
		client, err := m.Client()
		if err != nil {
			return err
		}
		return invite.Spend(ctx, client, options.Join.Token.ID)
	})
}

// settle is the settling of keel join --control-plane.
func (c *controlPlane) settle(ctx context.Context, options Options) error {
	var err error
	c.State, err = state.Load(c.Layout)
	fresh := errors.Is(err, os.ErrNotExist)
	if err != nil && !fresh {
		return err
	}
	if err := c.checkKind(fresh); err != nil {
		return err
	}
	joined := pki.HasShared(c.Layout)
	if err := c.find(ctx, options.Join, joined); err != nil {
		return err
	}
	if c.found != nil {
		if err := c.adopt(&options); err != nil {
			return err
		}
		c.State.StorePeers, c.State.Endpoint = c.bundle.Stores, c.bundle.Endpoint
	}
	c.State.Units, c.State.ControlPlane = true, true
	if options.NodeName, err = c.nodeName(options.NodeName); err != nil {
		return err
	}
	if err := c.checkName(ctx, options.NodeName, joined); err != nil {
		return err
	}
	if options.Join.Address != "" {
		if err := c.decideNodeAddress(ctx, options.Join.NodeIP, options.Join.Address); err != nil {
			return err
		}
	}
	active, err := c.activeProcesses(ctx, options.NodeName)
	if err != nil {
		return err
	}
	return c.decide(options, active)
}

// checkKind returns an error if the data directory cannot belong to a machine of the control plane.
func (c *controlPlane) checkKind(fresh bool) error {
	switch {
	case fresh:
		return nil
	case c.State.Worker():
		return fmt.Errorf("--control-plane: %s is of a worker of the mesh at %s: keel reset ends it; remove the "+
			"folder then", c.Layout.Dir, c.State.Server)
	case !c.State.ControlPlane:
		return c.ownMesh()
	}
	return c.checkDriver()
}

// find fetches, once, the mesh's description and what its control plane shares; without an address it fetches
// nothing.
func (c *controlPlane) find(ctx context.Context, asked *Joining, joined bool) error {
	switch {
	case c.found != nil:
		return nil
	case asked.Address == "" && joined:
		return nil
	case asked.Address == "":
		return errors.New("this machine has not joined the control plane of a mesh yet: keel token create " +
			"--control-plane --print-join-command on a machine of the control plane prints by what it does")
	}
	err := c.ask(ctx, asked)
	if err != nil && joined {
		return fmt.Errorf("%w (this machine has joined before: keel join alone brings it up to date)", err)
	}
	return err
}

func (c *controlPlane) ask(ctx context.Context, asked *Joining) error {
	found, err := discovery.FindThere(ctx, asked.Address, asked.Token, asked.Pins)
	if err != nil {
		return err
	}
	sealed, err := found.Bundle(ctx, asked.Token)
	if err != nil {
		return err
	}
	bundle, err := invite.Unseal(sealed, asked.Key, asked.Token.ID, time.Now())
	if err != nil {
		return err
	}
	if !discovery.ShareAuthority(bundle.Files["ca.crt"], found.CA) {
		return errors.New("what the control plane shares is of another authority than the mesh's: keel token create " +
			"--control-plane --print-join-command on a machine of the control plane makes it anew")
	}
	c.found, c.bundle = found, &bundle
	return nil
}

// adopt takes over the mesh's settings for nodes, unless the machine belongs to another mesh.
func (c *controlPlane) adopt(options *Options) error {
	own, err := c.authorities()
	if err != nil {
		return err
	}
	if err := c.sameMesh(own); err != nil {
		return err
	}
	c.adoptSettings(options)
	return nil
}

// prepare makes the files and networks that the processes need at their start. The machine has joined once it has
// all files that the control plane shares.
func (c *controlPlane) prepare(options Options) error {
	if c.bundle != nil {
		if len(c.bundle.Encryption) > 0 {
			if err := pki.WriteEncryption(c.Layout, c.bundle.Encryption); err != nil {
				return err
			}
		}
		if err := pki.WriteShared(c.Layout, c.bundle.Files); err != nil {
			return err
		}
	}
	return c.Mesh.prepare(options)
}

// encrypted reports whether the machine was given an encryption configuration for the store.
func (m *Mesh) encrypted() bool {
	_, err := os.Stat(m.Layout.Encryption())
	return err == nil
}

// Maker returns the command that updates the mesh on this machine.
func (m *Mesh) Maker() string {
	switch {
	case !m.State.Units:
		return "keel up"
	case m.State.ControlPlane || m.State.Worker():
		return "keel join"
	}
	return "keel init"
}

// runningArgs returns the arguments of this machine's running apiserver; none if it does not run.
func (m *Mesh) runningArgs(ctx context.Context) ([]string, error) {
	unit := plan.UnitName(plan.APIServer)
	states, err := m.units().States(ctx, []string{unit})
	if err != nil || states[unit].PID == 0 {
		return nil, err
	}
	return commandLine(states[unit].PID)
}
