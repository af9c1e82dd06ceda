// Package command is keel's command line.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/terminal"
	"keelson.dev/kit/daemon"
)

// Exit statuses of Main.
const (
	exitFailure = 1
	exitUsage   = 2
)

// Default data directories of keel up and of keel init.
const (
	defaultDataDir = ".keelson"
	machineDataDir = "/var/lib/keelson"
)

// usageError marks an error as the user's.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Main runs keel with the process's arguments and returns the exit status: 1 after a failure, 2 after wrong usage.
func Main() int {
	//nolint:forbidigo // Here it begins.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// Execute is Main with the context, arguments and outputs as parameters.
func Execute(ctx context.Context, args []string, out, errOut io.Writer) int {
	return execute(ctx, newRoot(), args, out, errOut)
}

// execute runs a command whose whole output passes through package terminal.
func execute(ctx context.Context, root *cobra.Command, args []string, out, errOut io.Writer) int {
	said, complained := terminal.NewWriter(out), terminal.NewWriter(errOut)
	defer said.Flush()
	defer complained.Flush()
	root.SetArgs(args)
	root.SetOut(said)
	root.SetErr(complained)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(complained, "keel:", err)
	if errors.As(err, &usageError{}) {
		return exitUsage
	}
	return exitFailure
}

// global are the flags of every command.
type global struct{ dataDir string }

// own returns the data directory of a mesh of keel up.
func (g *global) own() string { return cmp.Or(g.dataDir, defaultDataDir) }

// machine returns the data directory of a mesh of units, made by keel init or keel join.
func (g *global) machine() string { return cmp.Or(g.dataDir, machineDataDir) }

// either returns the data directory of the existing mesh; if both exist, or neither, that of keel up.
func (g *global) either() string {
	if _, err := os.Stat(plan.Layout{Dir: defaultDataDir}.State()); err == nil {
		return g.own()
	}
	if _, err := os.Stat(plan.Layout{Dir: machineDataDir}.State()); err == nil {
		return g.machine()
	}
	return g.own()
}

// Root returns keel with all its commands, independent of the environment: the generators of documentation read
// it.
func Root() *cobra.Command { return rootOf(&global{}) }

func newRoot() *cobra.Command { return rootOf(&global{dataDir: os.Getenv("KEELSON_DATA_DIR")}) }

func rootOf(g *global) *cobra.Command {
	root := &cobra.Command{
		Use: "keel", Short: "keel runs and inspects a Keelson mesh on this machine", Version: daemon.Version(),
		SilenceErrors: true, SilenceUsage: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: keel --help lists the commands", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().StringVar(&g.dataDir, "data-dir", g.dataDir,
		"folder of the mesh (or KEELSON_DATA_DIR); default: "+defaultDataDir+", of keel init "+machineDataDir)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{daemon.FlagError(err)} })
	root.AddCommand(newUp(g), newDown(g), newInit(g), newJoin(g), newToken(g), newReset(g), newSupervise(g),
		newKubeconfig(g), newStatus(g), newExplain(g), newSimulate(g), newStore(g), newCerts(g), newPreflight(g),
		newSupport(g), newTop(g), newUpgrade(g), newConsole(g))
	return root
}

// exactly returns cobra's check of the number of arguments, with our exit status.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > len(names):
			return usageError{fmt.Errorf("unexpected argument %q", args[len(names)])}
		case len(args) < len(names):
			return usageError{fmt.Errorf("%s is missing: %s", names[len(args)], c.UseLine())}
		}
		return nil
	}
}
