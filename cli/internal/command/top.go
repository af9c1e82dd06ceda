package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/view"
)

func newTop(g *global) *cobra.Command {
	output, limit := outputFlag(""), &deadline{}
	interval, pods := time.Duration(0), 0
	command := &cobra.Command{
		Use: "top", Short: "show what daemons, nodes and Pods use of CPU and memory, and what waits in queues",
		Long: "top measures the daemons of this machine, and asks the API what nodes and Pods use. What uses most\n" +
			"CPU comes first. CPU is in thousandths of a processor (m); QUEUED is how many entries wait in the\n" +
			"queues of a daemon, and OLDEST how long the first of them has waited.",
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			if interval <= 0 {
				return usageError{fmt.Errorf("--interval: %v must be greater than 0", interval)}
			}
			if pods < 0 {
				return usageError{fmt.Errorf("--pods: %d must be 0 or more", pods)}
			}
			m, err := mesh.OpenMachine(g.either(), c.OutOrStdout())
			if err != nil {
				return err
			}
			return limit.run(c, func(ctx context.Context) error {
				return output.write(c.OutOrStdout(), view.Measure(ctx, m, interval, pods), time.Now())
			})
		},
	}
	command.Flags().DurationVar(&interval, "interval", time.Second, "how long the daemons are measured")
	command.Flags().IntVar(&pods, "pods", 10, "how many Pods are shown")
	limit.add(command.Flags(), time.Minute, "how long all of it may take")
	output.add(command.Flags())
	return command
}
