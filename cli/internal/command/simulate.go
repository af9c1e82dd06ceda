package command

import (
	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
)

// schedulerProgram is the program that simulates, with the scheduler's own code.
const schedulerProgram = "keelson-scheduler"

// newSimulate hands its flags to the scheduler's program, which knows them.
func newSimulate(g *global) *cobra.Command {
	return &cobra.Command{
		Use:                "simulate",
		Short:              "tell which Pods of manifests would get a node, and what nodes more or less would change",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			dataDir, args := takeDataDir(g.either(), args)
			if !names(args, "--snapshot", "--kubeconfig", "--help", "-h") {
				m, err := mesh.Open(dataDir, c.OutOrStdout())
				if err != nil {
					return err
				}
				args = append(args, "--kubeconfig="+m.Layout.Kubeconfig(plan.AdminCertificate))
			}
			return handOn(c, schedulerProgram, append([]string{"simulate"}, args...))
		},
	}
}
