package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
)

func newCertsRotateCA(g *global) *cobra.Command {
	finish, limit := false, &deadline{}
	command := &cobra.Command{
		Use: "rotate-ca", Short: "replace the authority of the mesh, without a moment in which somebody is refused",
		Long: "rotate-ca makes another authority, has the mesh trust both, and then has the new one sign: every\n" +
			"certificate is made anew, and the daemons are started anew one after the other. Containers go on. Who\n" +
			"knows the old authority alone goes on being served. It ends by saying what is next. Once that is done,\n" +
			"rotate-ca --finish takes the old authority away; it refuses while a machine still needs that, and\n" +
			"names it. A run that was cut off is taken up by the next one.",
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := mesh.OpenMachine(g.either(), c.OutOrStdout())
			if err != nil {
				return err
			}
			return limit.run(c, func(ctx context.Context) error { return mesh.RotateAuthority(ctx, m, finish) })
		},
	}
	command.Flags().BoolVar(&finish, "finish", false, "take the old authority away; begins no rotation")
	limit.add(command.Flags(), 10*time.Minute, "how long all of it may take")
	return command
}
