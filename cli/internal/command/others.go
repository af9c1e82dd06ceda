package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/view"
)

// answerLimit is the help of --timeout for commands that only query daemons.
const answerLimit = "how long all the answers may take"

func newDown(g *global) *cobra.Command {
	limit := &deadline{}
	command := &cobra.Command{
		Use: "down", Short: "end what keel up has started, containers and networks included; the data stays",
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			layout, err := mesh.LayoutOf(g.own())
			if err != nil {
				return usageError{err}
			}
			return limit.run(c, func(ctx context.Context) error {
				return mesh.Down(ctx, &mesh.Mesh{Layout: layout, Out: c.OutOrStdout()})
			})
		},
	}
	limit.add(command.Flags(), 3*time.Minute, "how long all of it may take, two thirds of it for the Pods; "+
		"what is left then is killed")
	return command
}

func newKubeconfig(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "print the path of the operator's kubeconfig", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := mesh.Open(g.either(), c.OutOrStdout())
			if err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), m.Layout.Kubeconfig(plan.AdminCertificate))
			return nil
		},
	}
}

func newStatus(g *global) *cobra.Command {
	output, limit := outputFlag(""), &deadline{}
	command := &cobra.Command{
		Use: "status", Short: "show the daemons, who leads what, and the nodes", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			m, err := mesh.Open(g.either(), c.OutOrStdout())
			if err != nil {
				return err
			}
			return limit.run(c, func(ctx context.Context) error {
				return output.write(c.OutOrStdout(), view.Collect(ctx, m), time.Now())
			})
		},
	}
	limit.add(command.Flags(), time.Minute, answerLimit)
	output.add(command.Flags())
	return command
}

func newExplain(g *global) *cobra.Command {
	namespace, limit := "", &deadline{}
	explain := &cobra.Command{
		Use: "explain KIND NAME", Short: "tell why something is as it is, what it waits for, and what ends the wait",
		Long: "explain asks the daemons that decide over an object why it is as it is: what it waits for, since " +
			"when,\n" +
			"and what would end the wait. KIND is one of " + strings.Join(view.KindNames(), ", ") + ".",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if err := view.CheckKind(args[0]); err != nil {
				return usageError{err}
			}
			return exactly("KIND", "NAME")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			m, err := mesh.Open(g.either(), c.OutOrStdout())
			if err != nil {
				return err
			}
			return limit.run(c, func(ctx context.Context) error {
				account, err := view.Explain(ctx, m, args[0], namespace, args[1])
				if err != nil {
					return err
				}
				account.Write(c.OutOrStdout())
				return nil
			})
		},
	}
	limit.add(explain.Flags(), time.Minute, answerLimit)
	explain.Flags().StringVarP(&namespace, "namespace", "n", "default", "the object's namespace")
	return explain
}
