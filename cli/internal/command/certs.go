package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/view"
)

func newCerts(g *global) *cobra.Command {
	command := &cobra.Command{
		Use: "certs", Short: "show the certificates of the mesh, and make them anew",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: keel certs has list, renew and rotate-ca", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	command.AddCommand(newCertsList(g), newCertsRenew(g), newCertsRotateCA(g))
	return command
}

func newCertsList(g *global) *cobra.Command {
	output := outputFlag("")
	command := &cobra.Command{
		Use: "list", Short: "show every certificate that this machine has of its mesh, and until when it is good",
		Long: "list shows every certificate that this machine has of its mesh, of a worker too: whom it names,\n" +
			"who has signed it, until when it is good and what makes it anew. Nothing has to run. It ends with\n" +
			"status 1 if one has expired, is missing or damaged, or is due: a third of its life or less is left,\n" +
			"or it is not what keel init would make.",
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			m, err := mesh.OpenMachine(g.either(), c.OutOrStdout())
			if err != nil {
				return err
			}
			now := time.Now()
			reports, err := m.Certificates(now)
			if err != nil {
				return err
			}
			list := view.Certificates{DataDir: m.Layout.Dir, Make: m.Maker(), Reports: reports}
			return errors.Join(output.write(c.OutOrStdout(), list, now), list.Problem())
		},
	}
	output.add(command.Flags())
	return command
}

func newCertsRenew(g *global) *cobra.Command {
	renewal, limit := mesh.Renewal{}, &deadline{}
	command := &cobra.Command{
		Use: "renew [NAME...]", Short: "make certificates anew now, and start anew the daemons that use them",
		Long: "renew makes certificates anew, due or not: all of them, or those of the names, which are the files\n" +
			"in pki without .crt. It works when they have expired, and when nothing runs: the authority's key\n" +
			"signs, and nobody is asked. Daemons that run are started anew where they use one, containers go on.\n" +
			"What does not run is not started.",
		RunE: func(c *cobra.Command, args []string) error {
			m, err := mesh.OpenMachine(g.either(), c.OutOrStdout())
			if err != nil {
				return err
			}
			renewal.Names = args
			return limit.run(c, func(ctx context.Context) error {
				err := mesh.Renew(ctx, m, renewal)
				if name := new(plan.NameError); errors.As(err, &name) {
					return usageError{err}
				}
				return err
			})
		},
	}
	command.Flags().BoolVar(&renewal.NewKeys, "new-key", false, "give each of them a new key")
	limit.add(command.Flags(), 5*time.Minute, "how long all of it may take")
	return command
}
