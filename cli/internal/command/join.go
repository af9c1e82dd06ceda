package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/invite"
	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
)

// joinFlags are the typed flags of keel join.
type joinFlags struct {
	nodeFlags
	token, nodeIP, name string
	pins                []string
	controlPlane        bool
	key                 string
	port                int
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
	set.BoolVar(&flags.controlPlane, "control-plane", false, "give this machine an apiserver and a copy of the store, "+
		"and all keys of the mesh, by what keel token create --control-plane has made")
	set.StringVar(&flags.key, "certificate-key", "", "key of what the control plane shares, which keel token create "+
		"--control-plane prints")
	set.IntVar(&flags.port, "port", 0, "port of the apiserver with --control-plane; default: 6443, later as it is")
	return command
}

// pinFlag is discovery.PinFlag without the dashes.
const pinFlag = "discovery-token-ca-cert-hash"

func (f *joinFlags) options(dataDir string, args []string) (mesh.Options, error) {
	options, err := f.nodeFlags.options(dataDir)
	if err != nil {
		return options, err
	}
	options.NodeName, options.Port = f.name, f.port
	options.Join = &mesh.Joining{ControlPlane: f.controlPlane}
	if options.Join.NodeIP, err = parseNodeIP(f.nodeIP); err != nil {
		return options, err
	}
	if options.Join.Pins, err = discovery.ParsePins(f.pins); err != nil {
		return options, err
	}
	switch {
	case len(args) == 0 && (f.token != "" || len(f.pins) > 0 || f.key != ""):
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
	if err := f.controlPlaneOptions(options.Join); err != nil {
		return options, err
	}
	if options.Join.Token, err = discovery.ParseToken(f.token); err != nil {
		return options, err
	}
	options.Join.Address, err = discovery.ParseAddress(args[0])
	return options, err
}

// controlPlaneOptions takes over the flags with which the machine joins the control plane.
func (f *joinFlags) controlPlaneOptions(joining *mesh.Joining) (err error) {
	if f.port < 0 || f.port > 65535 {
		return fmt.Errorf("--port: %d must be between 0 and 65535", f.port)
	}
	if f.controlPlane != (f.key != "") {
		return fmt.Errorf("--control-plane: needs %s, and the reverse: keel token create --control-plane "+
			"--print-join-command prints both", invite.KeyFlag)
	}
	if f.key != "" {
		joining.Key, err = invite.ParseKey(f.key)
	}
	return err
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
	if m.State.ControlPlane {
		sayControlPlane(out, m, options)
		return nil
	}
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

func sayControlPlane(out io.Writer, m *mesh.Mesh, options mesh.Options) {
	fmt.Fprintf(out, "\nThis machine is one of the mesh's control plane, with the node %s, an apiserver at %s and a "+
		"copy of the\nstore, and %s.\n\n", m.State.Nodes[0].Name, m.ServerURL(), m.Keeper())
	fmt.Fprintf(out, "  export KUBECONFIG=%s\n  %s get nodes\n\n", m.Layout.Kubeconfig(plan.AdminCertificate),
		filepath.Join(options.Programs, "kubectl"))
	fmt.Fprintf(out, "keel store members shows which machines have the store: of three, one may fail, of two none. "+
		"keel join again\nbrings all of it up to date, keel reset ends it.\n")
}
