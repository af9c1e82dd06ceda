package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/cli/internal/invite"
	"keelson.dev/cli/internal/mesh"
)

// tokenLife is the default lifetime of a token.
const tokenLife = 24 * time.Hour

func newToken(g *global) *cobra.Command {
	command := &cobra.Command{
		Use: "token", Short: "make, list and delete the tokens by which machines join the mesh of keel init",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: keel token has create, list and delete", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	command.AddCommand(newTokenCreate(g), newTokenList(g), newTokenDelete(g))
	return command
}

func newTokenCreate(g *global) *cobra.Command {
	life, whole, description, limit := tokenLife, false, "", &deadline{}
	controlPlane := false
	command := &cobra.Command{
		Use: "create", Short: "make a token and print it", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if controlPlane {
				if !c.Flags().Changed("ttl") {
					life = invite.ControlPlaneLife
				}
				return offer(g, c, limit, life, whole, description)
			}
			if err := invite.CheckLife(life); err != nil {
				return usageError{err}
			}
			return onMesh(g, c, limit, func(ctx context.Context, m *mesh.Mesh, _ kubernetes.Interface) error {
				token, line, err := m.JoinCommand(ctx, life, description)
				if err != nil {
					return err
				}
				if !whole {
					line = token.String()
				}
				fmt.Fprintln(c.OutOrStdout(), line)
				return nil
			})
		},
	}
	command.Flags().DurationVar(&life, "ttl", life, "how long the token is good; 0 is for ever; with "+
		"--control-plane two hours, and never more")
	command.Flags().BoolVar(&controlPlane, "control-plane", false, "make one by which one machine joins the control "+
		"plane, and print the key that it needs beside it: whoever has both has the mesh")
	command.Flags().BoolVar(&whole, "print-join-command", false, "print all that is typed on the machine that joins")
	command.Flags().StringVar(&description, "description", "", "what the token is for")
	limit.add(command.Flags(), time.Minute, answerLimit)
	return command
}

// offer creates and prints what one machine needs to join the control plane.
func offer(g *global, c *cobra.Command, limit *deadline, life time.Duration, whole bool, description string) error {
	if err := invite.CheckControlPlaneLife(life); err != nil {
		return usageError{err}
	}
	return onMesh(g, c, limit, func(ctx context.Context, m *mesh.Mesh, _ kubernetes.Interface) error {
		made, err := m.Offer(ctx, life, cmp.Or(description, "one machine of the control plane"))
		if err != nil {
			return err
		}
		if len(made.Flags) > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "the apiserver here has flags of your own, which that of the other machine "+
				"needs, too, by a drop-in there: %s\n", strings.Join(made.Flags, " "))
		}
		line := made.Command
		if !whole {
			line = made.Token.String() + "\n" + made.Key.String()
		}
		fmt.Fprintln(c.OutOrStdout(), line)
		return nil
	})
}

func newTokenList(g *global) *cobra.Command {
	limit := &deadline{}
	command := &cobra.Command{
		Use: "list", Short: "show the tokens, which are secret", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return onMesh(g, c, limit, func(ctx context.Context, _ *mesh.Mesh, client kubernetes.Interface) error {
				tokens, err := invite.Tokens(ctx, client)
				if err != nil {
					return err
				}
				table := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 3, ' ', 0)
				fmt.Fprintln(table, "TOKEN\tTTL\tEXPIRES\tUSAGES\tDESCRIPTION\tEXTRA GROUPS")
				for _, t := range tokens {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Token, t.TTL, t.Expires, t.Usages,
						orNone(t.Description), orNone(t.Groups))
				}
				return table.Flush()
			})
		},
	}
	limit.add(command.Flags(), time.Minute, answerLimit)
	return command
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

func newTokenDelete(g *global) *cobra.Command {
	limit := &deadline{}
	command := &cobra.Command{
		Use: "delete TOKEN", Short: "delete a token, of which the ID is enough: nobody joins by it any more",
		Args: exactly("TOKEN"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := invite.ParseTokenID(args[0])
			if err != nil {
				return usageError{err}
			}
			return onMesh(g, c, limit, func(ctx context.Context, _ *mesh.Mesh, client kubernetes.Interface) error {
				if err := invite.DeleteToken(ctx, client, id); err != nil {
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "token %s is deleted\n", id)
				return nil
			})
		},
	}
	limit.add(command.Flags(), time.Minute, answerLimit)
	return command
}

// onMesh runs a function with the operator's client for the existing mesh.
func onMesh(g *global, c *cobra.Command, limit *deadline,
	do func(context.Context, *mesh.Mesh, kubernetes.Interface) error) error {
	m, err := mesh.Open(g.either(), c.OutOrStdout())
	if err != nil {
		return err
	}
	client, err := m.Client()
	if err != nil {
		return err
	}
	return limit.run(c, func(ctx context.Context) error { return do(ctx, m, client) })
}
