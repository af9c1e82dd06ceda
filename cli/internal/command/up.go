package command

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/deployment"
	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/sample"
	"keelson.dev/cli/internal/systemd"
)

// upFlags are the typed flags of keel up.
type upFlags struct {
	meshFlags
	nodes   int
	sample  bool
	cgroups string
}

func newUp(g *global) *cobra.Command {
	flags := &upFlags{}
	command := &cobra.Command{
		Use:   "up",
		Short: "start the mesh and leave it running; started again, it starts only what is missing",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			options, err := flags.options(g, c.Flags().Changed)
			if err != nil {
				return usageError{err}
			}
			return flags.run(c, func(ctx context.Context) error { return up(ctx, c.OutOrStdout(), options) })
		},
	}
	set := command.Flags()
	flags.add(set, 3*time.Minute, "port of the apiserver; 0 takes 6443 or the next free one")
	set.IntVar(&flags.nodes, "nodes", 1, "how many nodes run Pods, each with its own container runtime; 0 is the "+
		"control plane alone; default later: as many as there are")
	set.BoolVar(&flags.sample, "sample", true, "leave the sample Deployment hello running")
	set.StringVar(&flags.cgroups, "cgroup-driver", plan.Cgroupfs, "who keeps the cgroups of Pods: cgroupfs for the "+
		"container runtime itself, systemd where that runs the machine; default later: as it is")
	return command
}

func (f *upFlags) options(g *global, given func(flag string) bool) (mesh.Options, error) {
	options, err := f.meshFlags.options(g.own(), given)
	if err != nil {
		return options, err
	}
	options.Nodes, options.Sample = f.nodes, f.sample
	if f.nodes < 0 || f.nodes > maxNodes {
		return options, fmt.Errorf("--nodes: %d must be between 0 and %d", f.nodes, maxNodes)
	}
	if !given("nodes") {
		options.Nodes = mesh.KeepNodes
	}
	if f.cgroups != plan.Cgroupfs && f.cgroups != plan.Systemd {
		return options, fmt.Errorf("--cgroup-driver: %q must be cgroupfs or systemd", f.cgroups)
	}
	if given("cgroup-driver") {
		if err := systemd.Check(); f.cgroups == plan.Systemd && err != nil {
			return options, fmt.Errorf("--cgroup-driver=systemd: %w", err)
		}
		options.CgroupDriver = f.cgroups
	}
	return options, nil
}

// maxNodes is far more than one machine can run; bridge names have room for it.
const maxNodes = 99

func up(ctx context.Context, out io.Writer, options mesh.Options) error {
	layout, err := mesh.LayoutOf(options.DataDir)
	if err != nil {
		return usageError{err}
	}
	m := &mesh.Mesh{Layout: layout, Out: out}
	if err := mesh.Up(ctx, m, options); err != nil {
		return err
	}
	if err := installDNS(ctx, m); err != nil {
		return err
	}
	m.SayWhatOthersBring(options.Programs)
	if options.Sample && m.Network().PodsStart {
		err := m.Part(ctx, "sample Deployment hello", func(ctx context.Context) error { return runSample(ctx, m) })
		if err != nil {
			return err
		}
	}
	awaitDNS(ctx, m)
	fmt.Fprintf(out, "\nThe mesh is up at %s.\n\n  export KUBECONFIG=%s\n", m.ServerURL(),
		layout.Kubeconfig(plan.AdminCertificate))
	fmt.Fprintf(out, "  %s get deployments,pods -o wide\n\n", filepath.Join(options.Programs, "kubectl"))
	fmt.Fprintf(out,
		"keel status shows the daemons, keel explain pod NAME why a Pod is where it is, keel down ends all of it.\n")
	return nil
}

func runSample(ctx context.Context, m *mesh.Mesh) error {
	client, err := m.Client()
	if err != nil {
		return err
	}
	there, err := sample.Exists(ctx, client)
	if err != nil {
		return err
	}
	if !there {
		if err := sample.Apply(ctx, client); err != nil {
			return err
		}
	}
	name := deployment.Name{Namespace: sample.Namespace, Name: sample.Name}
	return deployment.WaitAvailable(ctx, client, name, m.RunningPods, m.Out)
}
