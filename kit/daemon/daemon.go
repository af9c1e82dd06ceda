// Package daemon is the one way to write a Keelson daemon: a command with flags, environment and a config file,
// logging, signals, the status address and an ordered stop.
//
// The five have one skeleton:
//
//	cmd/keelson-NAME   func main() { os.Exit(daemon.Main(app.Daemon())) }
//	internal/app       Daemon() names the flags and what runs; Config and Run(ctx, Config) are the parts
//	inproc             Start(ctx, Config) runs the same inside another process, a test's for example
package daemon

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
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/introspect"
	"keelson.dev/kit/logging"
	"keelson.dev/kit/memory"
	"keelson.dev/kit/telemetry"
)

// Exit statuses of Main.
const (
	exitFailure = 1
	exitUsage   = 2
)

// Options are a daemon's own flags.
type Options interface {
	// AddFlags binds the flags, defaults included.
	AddFlags(*pflag.FlagSet)
	// Validate says what is wrong with their values; the message begins with the flag, "--name: ".
	Validate() error
}

// Daemon describes one program.
type Daemon struct {
	// Name is the service's folder; the binary is "keelson-" + Name.
	Name string
	// Short is one line of help.
	Short string
	// Options are its flags.
	Options Options
	// HeapTarget is the default of --gc-heap-target; 0 is memory.DefaultHeapTarget.
	HeapTarget int64
	// Run does the work until ctx ends and returns when all of it has stopped.
	Run func(ctx context.Context, e *Environment) error
}

// Environment is what a running daemon is given from outside, and shows itself by.
type Environment struct {
	// Log is the process's logger.
	Log *zap.Logger
	// Live and Ready are the checks behind /livez and /readyz.
	Live, Ready *telemetry.Health
	// Metrics are shown on /metrics.
	Metrics *telemetry.Metrics
	// State is what introspection shows.
	State *introspect.State
}

// NewEnvironment returns the environment of a daemon inside another process: it logs nothing and serves no
// introspection.
func NewEnvironment(name string) *Environment {
	return &Environment{
		Log: zap.NewNop(), Live: &telemetry.Health{}, Ready: &telemetry.Health{},
		Metrics: telemetry.NewMetrics(name, Version()), State: introspect.NewState(name, Version()),
	}
}

// UsageError marks an error as the user's: a wrong flag, file or environment. Main then ends with status 2.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// IsUsage reports whether UsageError marks the error.
func IsUsage(err error) bool { return errors.As(err, &usageError{}) }

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Main runs the daemon with the process's arguments and returns the exit status: 0 after a clean stop, 1 after a
// failure and 2 after wrong usage, each with one line on standard error. SIGINT and SIGTERM stop it; a second one ends
// it at once.
func Main(d Daemon) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailure)
	}()
	return Execute(ctx, d, os.Args[1:], os.Stderr)
}

// Execute is Main with its surroundings given.
func Execute(ctx context.Context, d Daemon, args []string, stderr io.Writer) int {
	command := d.command(stderr)
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "keelson-%s: %v\n", d.Name, err)
	if IsUsage(err) {
		return exitUsage
	}
	return exitFailure
}

func (d Daemon) command(stderr io.Writer) *cobra.Command {
	common := newCommonFlags(cmp.Or(d.HeapTarget, memory.DefaultHeapTarget))
	command := &cobra.Command{
		Use: "keelson-" + d.Name, Short: d.Short, Version: Version(),
		SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return UsageError(fmt.Errorf("unexpected argument %q, only flags are taken", args[0]))
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return d.start(c.Context(), c.Flags(), common, stderr) },
	}
	common.addFlags(command.Flags())
	d.Options.AddFlags(command.Flags())
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return UsageError(FlagError(err)) })
	return command
}

func (d Daemon) start(ctx context.Context, flags *pflag.FlagSet, common *commonFlags, stderr io.Writer) error {
	if err := errors.Join(fill(flags, common.config, os.LookupEnv)); err != nil {
		return UsageError(err)
	}
	if err := common.logging.Validate(); err != nil {
		return UsageError(err)
	}
	if err := common.memory.Validate(); err != nil {
		return UsageError(err)
	}
	if err := d.Options.Validate(); err != nil {
		return UsageError(err)
	}
	if err := failpoint.ArmAll(os.Getenv(failpoint.EnvVar)); err != nil {
		return UsageError(err)
	}
	log, err := logging.New(common.logging, stderr)
	if err != nil {
		return UsageError(err)
	}
	defer func() { _ = log.Sync() }()
	log = log.Named(d.Name)
	status, err := telemetry.Listen(common.status, telemetry.NewMetrics(d.Name, Version()))
	if err != nil {
		return UsageError(err)
	}
	logging.Capture(log)
	if stderr == os.Stderr {
		if err := logging.CaptureStderr(log); err != nil {
			return err
		}
	}
	limit := memory.Keep(ctx, common.memory)
	e := &Environment{
		Log: log, Live: &status.Live, Ready: &status.Ready, Metrics: status.Metrics, State: introspect.NewState(d.Name,
			Version()),
	}
	e.State.Register(status.GRPC)
	e.Log.Info("starting", zap.String("version", Version()), zap.String("statusAddress", status.Address()),
		zap.Int("pid", os.Getpid()), zap.Int64("memorySoftLimit", limit))
	return d.run(ctx, e, status)
}

// run keeps the status address up until the daemon's own work has stopped.
func (d Daemon) run(ctx context.Context, e *Environment, status *telemetry.Server) error {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- status.Serve(serving) }()

	err := d.Run(ctx, e)
	stopServing()
	if err := errors.Join(err, <-served); err != nil {
		return err
	}
	e.Log.Info("stopped")
	return nil
}
