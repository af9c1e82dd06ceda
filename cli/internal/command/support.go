package command

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/support"
)

func newSupport(g *global) *cobra.Command {
	output, limit := "", &deadline{}
	command := &cobra.Command{
		Use: "support", Short: "collect what helps to find a fault into one file, without Secrets",
		Long: "support writes an archive with the logs, readiness, metrics and goroutines of the daemons, the\n" +
			"objects of the API, the state of the certificates and facts of the machine, and prints its name. It\n" +
			"reads neither Secrets nor ConfigMaps, and replaces what has the shape of a credential. The file\n" +
			"index.txt in the archive lists what is in it, and what could not be collected and why: a daemon that\n" +
			"does not run or does not answer is no failure.",
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			now := time.Now()
			if output == "" {
				output = support.FileName(now)
			}
			if info, err := os.Stat(output); err == nil && !info.Mode().IsRegular() {
				return usageError{fmt.Errorf("--output: %s is not a file", output)}
			}
			m, err := mesh.OpenMachine(g.either(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			return limit.run(c, func(ctx context.Context) error {
				summary, err := support.Collect(ctx, m, output, now)
				if err != nil {
					return err
				}
				if n := len(summary.Missing); n > 0 {
					fmt.Fprintf(
						c.ErrOrStderr(),
						"%d files are missing or incomplete: index.txt in the archive says why\n",
						n,
					)
				}
				fmt.Fprintln(c.OutOrStdout(), output)
				return nil
			})
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "file of the archive, replaced if it exists; default: "+
		"keel-support-TIME.tar.gz in the current folder")
	limit.add(command.Flags(), 2*time.Minute, answerLimit)
	return command
}
