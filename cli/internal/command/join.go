package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/mesh"
)

// joinFlags are the flags of keel join as they are typed.
type joinFlags struct {
	nodeFlags
	token, nodeIP, name string
	pins                []string
}

func newJoin(g *global) *cobra.Command {
	flags := &joinFlags{}
	command := &cobra.Command{
		Use: "join [ADDRESS:PORT]",
		Short: "make this machine a node of the mesh whose apiserver is there; run again, without an address, it " +
			"brings the node up to date",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("unexpected argument %q", args[1])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			options, err := flags.options(g.machine(), args)
			if err != nil {
				return usageError{err}
			}
			return flags.run(c, func(ctx context.Context) error { return join(ctx, c.OutOrStdout(), options) })
		},
	}
	set := command.Flags()
	flags.nodeFlags.add(set, 5*time.Minute)
	set.StringVar(&flags.token, "token", "", "bootstrap token, which keel token create makes")
	set.StringSliceVar(&flags.pins, pinFlag, nil,
		"hash of the public key of the mesh's authority, sha256:HEX, as keel init prints it; more than one may be "+
			"given")
	set.StringVar(&flags.name, "node-name", "", "name of the node; default: the host's, later as it is")
	set.StringVar(&flags.nodeIP, "node-ip", "", "IPv4 address of this machine at which the mesh reaches the node; "+
		"default: the one from which it reaches the apiserver, later as it is")
	return command
}

// pinFlag is discovery.PinFlag as flags are named here.
const pinFlag = "discovery-token-ca-cert-hash"

func (f *joinFlags) options(dataDir string, args []string) (mesh.Options, error) {
	options, err := f.nodeFlags.options(dataDir)
	if err != nil {
		return options, err
	}
	options.NodeName, options.Join = f.name, &mesh.Joining{}
	if options.Join.NodeIP, err = parseNodeIP(f.nodeIP); err != nil {
		return options, err
	}
	if options.Join.Pins, err = discovery.ParsePins(f.pins); err != nil {
		return options, err
	}
	switch {
	case len(args) == 0 && (f.token != "" || len(f.pins) > 0):
		return options, errors.New("ADDRESS:PORT is missing: where the apiserver is of the mesh that the token is of")
	case len(args) == 0:
		return options, nil
	case f.token == "":
		return options, errors.New("--token is missing: keel token create --print-join-command on the mesh's first " +
			"machine prints all that is needed")
	case len(f.pins) == 0:
		return options, fmt.Errorf("%s is missing: without it, anybody in between could pretend to be the mesh",
			discovery.PinFlag)
	}
	if options.Join.Token, err = discovery.ParseToken(f.token); err != nil {
		return options, err
	}
	options.Join.Address, err = discovery.ParseAddress(args[0])
	return options, err
}

func parseNodeIP(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil || !address.Is4() || address.IsLoopback() || address.IsUnspecified() {
		return address, fmt.Errorf("--node-ip: %q must be an IPv4 address of this machine that others reach", text)
	}
	return address, nil
}

func join(ctx context.Context, out io.Writer, options mesh.Options) error {
	layout, err := mesh.LayoutOf(options.DataDir)
	if err != nil {
		return usageError{err}
	}
	m := &mesh.Mesh{Layout: layout, Out: out}
	if err := mesh.Join(ctx, m, options); err != nil {
		return err
	}
	m.SayWhatOthersBring(options.Programs)
	name := m.State.Nodes[0].Name
	fmt.Fprintf(out, "\nThis machine is the node %s of the mesh at %s, and %s.\n\n", name, m.State.Server, m.Keeper())
	fmt.Fprintf(out, "Logs of its Pods, and exec and the like into them, need a certificate that somebody approves "+
		"once on the mesh's first\nmachine, and anew when the node's addresses change. If the request names no "+
		"addresses but this machine's:\n\n"+
		"  kubectl get csr --field-selector spec.signerName=kubernetes.io/kubelet-serving\n"+
		"  kubectl certificate approve NAME\n\n")
	fmt.Fprintf(out, "keel join again brings all of it up to date, keel reset ends it.\n")
	return nil
}
