package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
)

func newInit(g *global) *cobra.Command {
	flags, node, endpoint := &meshFlags{}, "", ""
	command := &cobra.Command{
		Use: "init",
		Short: "make this machine a mesh of one node, whose daemons systemd or keel itself runs; run again, it " +
			"brings the mesh up to date",
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			options, err := flags.options(g.machine(), c.Flags().Changed)
			if err != nil {
				return usageError{err}
			}
			options.NodeName = node
			if options.Endpoint, err = parseEndpoint(endpoint); err != nil {
				return usageError{err}
			}
			return flags.run(c, func(ctx context.Context) error { return initialize(ctx, c.OutOrStdout(), options) })
		},
	}
	flags.add(command.Flags(), 5*time.Minute, "port of the apiserver; default: 6443, later as it is")
	command.Flags().StringVar(&node, "node-name", "", "name of the node; default: the host's, later as it is")
	command.Flags().StringVar(&endpoint, "control-plane-endpoint", "", "HOST[:PORT], a name or an address that leads "+
		"to a live machine of the control plane, by which other machines reach the mesh; default: the address of this "+
		"machine, later as it is")
	return command
}

// parseEndpoint parses the address at which other machines reach the control plane.
func parseEndpoint(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	endpoint, err := discovery.ParseAddress(text)
	if err != nil {
		return "", fmt.Errorf("--control-plane-endpoint: %q must be a name or an address, with a port if it is not "+
			"6443, for example mesh.example.com:6443", text)
	}
	host, _, _ := net.SplitHostPort(endpoint) // as ParseAddress has made it
	address, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && (address.IsLoopback() || address.IsUnspecified()) {
		return "", fmt.Errorf("--control-plane-endpoint: %q leads each machine to itself: give a name or an address "+
			"that leads to the control plane from every machine", text)
	}
	return endpoint, nil
}

func initialize(ctx context.Context, out io.Writer, options mesh.Options) error {
	layout, err := mesh.LayoutOf(options.DataDir)
	if err != nil {
		return usageError{err}
	}
	m := &mesh.Mesh{Layout: layout, Out: out}
	if err := mesh.Init(ctx, m, options); err != nil {
		return err
	}
	line := ""
	if err := m.Part(ctx, "letting machines join", func(ctx context.Context) (err error) {
		line, err = inviteOnce(ctx, m)
		return err
	}); err != nil {
		return err
	}
	if err := installDNS(ctx, m); err != nil {
		return err
	}
	m.SayWhatOthersBring(options.Programs)
	awaitDNS(ctx, m)
	fmt.Fprintf(out, "\nThe mesh is up at %s, and %s.\n\n", m.ServerURL(), m.Keeper())
	fmt.Fprintf(out, "  export KUBECONFIG=%s\n  %s get nodes\n\n", layout.Kubeconfig(plan.AdminCertificate),
		filepath.Join(options.Programs, "kubectl"))
	sayHowToJoin(out, line)
	fmt.Fprintf(out, "keel status shows the daemons, %s what one of them says, keel init again\n"+
		"brings all of it up to date, keel reset ends it.\n", m.Log(plan.APIServer))
	return nil
}

// inviteOnce lets machines join the mesh. Only in the first run does it create a token and return the join
// command: a run that updates a mesh invites no machine.
func inviteOnce(ctx context.Context, m *mesh.Mesh) (line string, err error) {
	before, err := m.Invite(ctx)
	if err != nil || before {
		return "", err
	}
	_, line, err = m.JoinCommand(ctx, tokenLife, "made by keel init")
	return line, err
}

func sayHowToJoin(out io.Writer, line string) {
	if line == "" {
		fmt.Fprintf(out, "keel token create --print-join-command prints by what another machine joins.\n\n")
		return
	}
	fmt.Fprintf(out, "Within %.0f hours another machine with these programs becomes a node of the mesh by\n\n  %s\n\n",
		tokenLife.Hours(), line)
	fmt.Fprintf(out, "keel token create --control-plane --print-join-command prints by what it becomes one of the "+
		"control plane.\n\n")
}

func newReset(g *global) *cobra.Command {
	yes, force, limit := false, false, &deadline{}
	command := &cobra.Command{
		Use:   "reset",
		Short: "end what keel init or keel join has started, containers, networks and units included; the data stays",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			layout, err := mesh.LayoutOf(g.machine())
			if err != nil {
				return usageError{err}
			}
			if !yes {
				return usageError{fmt.Errorf("--yes is missing: reset ends the mesh's Pods and removes its units, "+
					"keelson-*; store, certificates, images and volumes stay in %s", layout.Dir)}
			}
			return limit.run(c, func(ctx context.Context) error {
				return mesh.Reset(ctx, &mesh.Mesh{Layout: layout, Out: c.OutOrStdout()}, force)
			})
		},
	}
	command.Flags().BoolVar(&yes, "yes", false, "do it")
	command.Flags().BoolVar(&force, "force", false, "do it though the other machines that have the store cannot be "+
		"left: they go on waiting for this one")
	limit.add(command.Flags(), 5*time.Minute, "how long all of it may take, two thirds of it for the Pods")
	return command
}
