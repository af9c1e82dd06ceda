package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/upgrade"
)

// allDaemons stands for the daemons of a machine.
const allDaemons = "all"

func newUpgrade(g *global) *cobra.Command {
	options, limit := mesh.Upgrading{}, &deadline{}
	command := &cobra.Command{
		Use:   "upgrade [all|" + strings.Join(upgrade.Daemons, "|") + "]",
		Short: "replace this machine's daemons by those of another version, one after the other; Pods go on running",
		Long: "upgrade replaces the daemons of this machine by the programs in keel's own folder, or in --from. It\n" +
			"first checks the versions, the other machines and the disk, and changes nothing where something is\n" +
			"wrong. Then it takes one daemon after the other away in good order, starts the new one and waits until\n" +
			"that is ready. One that does not become ready is taken back, and keel ends with status 1. Wherever " +
			"keel\nis cut off, the same command goes on. Begin with the machines of the control plane, one at a time.",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usageError{fmt.Errorf("unexpected argument %q", args[1])}
			case len(args) == 1 && args[0] != allDaemons && !slices.Contains(upgrade.Daemons, args[0]):
				return usageError{fmt.Errorf("%q must be all or one of %s", args[0],
					strings.Join(upgrade.Daemons, ", "))}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			if options.Within <= 0 {
				return usageError{fmt.Errorf("--ready-within: %v must be greater than 0", options.Within)}
			}
			if options.Back && options.From != "" {
				return usageError{errors.New("--from: --rollback goes to what is kept from before: leave one of " +
					"them out")}
			}
			if len(args) == 1 && args[0] != allDaemons {
				options.Asked = args
			}
			if options.Own, err = ownFolder(); err != nil {
				return err
			}
			m, err := mesh.OpenMachine(g.machine(), c.OutOrStdout())
			if err != nil {
				return err
			}
			return limit.run(c, func(ctx context.Context) error { return mesh.Upgrade(ctx, m, options) })
		},
	}
	set := command.Flags()
	set.StringVar(&options.From, "from", "", "folder or package (.tar.gz, .deb) of the programs; default: keel's own "+
		"folder")
	set.BoolVar(&options.Back, "rollback", false, "go back to what ran before the last upgrade")
	set.BoolVar(&options.DryRun, "dry-run", false, "say what would be done, and change nothing")
	set.BoolVar(&options.Force, "force", false, "go on though the mesh does not answer, or cannot do without "+
		"this machine")
	set.DurationVar(&options.Within, "ready-within", 3*time.Minute, "how long a new daemon may take to become ready "+
		"before it is taken back")
	limit.add(set, 30*time.Minute, "how long all of it may take; the same command goes on afterwards")
	return command
}
