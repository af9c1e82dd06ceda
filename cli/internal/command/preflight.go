package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
)

func newPreflight(g *global) *cobra.Command {
	flags, node := &meshFlags{}, ""
	command := &cobra.Command{
		Use:   "preflight [init|join|up]",
		Short: "say what this machine lacks for keel init, keel join or keel up, and change nothing",
		Long: "preflight looks at the machine as keel init (or the command that is named) does before it writes\n" +
			"anything, and says in a sentence each what keeps that from running here and what would have it run\n" +
			"worse. It takes the flags of keel init, and ends with status 1 where something would keep the command\n" +
			"from running. For keel join, the mesh's ranges are left out: the mesh says them when the machine joins.",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usageError{fmt.Errorf("unexpected argument %q", args[1])}
			case len(args) == 1 && !slices.Contains(mesh.Purposes, args[0]):
				return usageError{fmt.Errorf("%q must be init, join or up", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			purpose, dataDir := mesh.ForInit, g.machine()
			if len(args) == 1 {
				purpose = mesh.Purpose(args[0])
			}
			if purpose == mesh.ForUp {
				dataDir = g.own()
			}
			options, err := flags.options(dataDir, c.Flags().Changed)
			if err != nil {
				return usageError{err}
			}
			options.NodeName = node
			return flags.run(c, func(ctx context.Context) error {
				return preflight(ctx, c.OutOrStdout(), options, purpose)
			})
		},
	}
	flags.add(command.Flags(), time.Minute, "port of the apiserver; default: 6443, later as it is")
	command.Flags().StringVar(&node, "node-name", "", "name of the node; default: the host's, later as it is")
	return command
}

func preflight(ctx context.Context, out io.Writer, options mesh.Options, purpose mesh.Purpose) error {
	layout, err := mesh.LayoutOf(options.DataDir)
	if err != nil {
		return usageError{err}
	}
	if purpose == mesh.ForUp {
		options.Nodes = mesh.KeepNodes
	}
	found := mesh.Preflight(ctx, &mesh.Mesh{Layout: layout, Out: out}, options, purpose)
	for _, problem := range found.Problems {
		fmt.Fprintf(out, "problem: %s\n", strings.TrimSpace(problem))
	}
	for _, warning := range found.Warnings {
		fmt.Fprintf(out, "warning: %s\n", strings.TrimSpace(warning))
	}
	if n := len(found.Problems); n > 0 {
		return fmt.Errorf("keel %s does not run here before what is called a problem above is mended (%d)", purpose, n)
	}
	fmt.Fprintf(out, "nothing keeps keel %s from running here\n", purpose)
	return nil
}
