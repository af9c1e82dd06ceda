package command

import (
	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
)

func newSupervise(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "supervise",
		Short: "on a machine without systemd, start again what has ended of a mesh of keel init or keel join; for " +
			"the machine's init",
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			layout, err := mesh.LayoutOf(g.machine())
			if err != nil {
				return usageError{err}
			}
			//nolint:forbidigo // It has no end of its own.
			return mesh.Supervise(c.Context(), &mesh.Mesh{Layout: layout, Out: c.OutOrStdout()})
		},
	}
}
