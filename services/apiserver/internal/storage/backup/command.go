package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage/members"
)

// Name is the subcommand.
const Name = "store"

// Exit statuses of Main.
const (
	exitFailure = 1
	exitUsage   = 2
)

// Main does as the arguments say, and returns the exit status: 1 after a failure and 2 after wrong usage, each with one
// line on standard error. A signal ends it, and leaves no file in parts.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Execute(ctx, args, os.Stdout, os.Stderr)
}

// Execute is Main with its surroundings given.
func Execute(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := failpoint.ArmAll(os.Getenv(failpoint.EnvVar))
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(errOut, err)
	if daemon.IsUsage(err) {
		return exitUsage
	}
	return exitFailure
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: Name, Short: "back the store of a mesh up, restore it, move it, and tell who has it",
		SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "keel " + Name},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return daemon.UsageError(
					fmt.Errorf("unknown command %q: keel store --help lists the commands", args[0]),
				)
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return daemon.UsageError(daemon.FlagError(err)) })
	root.AddCommand(newSnapshot(), newVerify(), newRestore(), newMigrate())
	root.AddCommand(members.Commands()...)
	return root
}

// addDataDir binds the flag that keel fills in.
func addDataDir(fs *pflag.FlagSet, dir *string) {
	fs.StringVar(dir, "data-dir", "/var/lib/keelson/apiserver", "the apiserver's")
	_ = fs.MarkHidden("data-dir")
}

func addOutput(fs *pflag.FlagSet, output *string) {
	fs.StringVarP(output, "output", "o", "", "json for programs")
}

func checkOutput(output string) error {
	if output != "" && output != "json" {
		return daemon.UsageError(fmt.Errorf("--output: %q must be json, or left out for text", output))
	}
	return nil
}

// one takes the argument of that name.
func one(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return daemon.UsageError(fmt.Errorf("%s is missing: %s", name, c.UseLine()))
		case len(args) > 1:
			return daemon.UsageError(fmt.Errorf("unexpected argument %q", args[1]))
		}
		return nil
	}
}

func newSnapshot() *cobra.Command {
	from, keep, output := &source{}, 0, ""
	command := &cobra.Command{
		Use:   "snapshot FILE|DIR",
		Short: "save the store as it is at one moment, while the mesh goes on",
		Long: "snapshot saves the store of this machine's mesh, or of an etcd cluster, to a new FILE, or to one in\n" +
			"DIR that has the time in its name, and beside it FILE.json that says what is in it. Only the owner\n" +
			"may read them: Secrets are among what is saved.",
		Args: one("FILE|DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if keep < 0 || c.Flags().Changed("keep") && keep == 0 {
				return daemon.UsageError(fmt.Errorf("--keep: %d must be greater than 0", keep))
			}
			t := taking{path: args[0], keep: keep, now: time.Now()}
			if _, _, _, err := t.target(); err != nil {
				return daemon.UsageError(err)
			}
			client, closeStore, err := from.open(c.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			done, err := t.take(c.Context(), client)
			if done != nil {
				err = errors.Join(done.write(c.OutOrStdout(), output), err)
			}
			return err
		},
	}
	from.addFlags(command.Flags())
	command.Flags().IntVar(&keep, "keep", 0,
		"how many snapshots of this store stay in DIR; older ones that snapshot made go once the new one is safe")
	addOutput(command.Flags(), &output)
	return command
}

func (d *taken) write(out io.Writer, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Path string `json:"path"`
			Record
			Removed []string `json:"removed,omitempty"`
		}{d.path, d.record, d.removed})
	}
	fmt.Fprintf(out, "%s: %d keys at revision %d, %d bytes\n", d.path, d.record.Keys, d.record.Revision, d.record.Bytes)
	for _, name := range d.removed {
		fmt.Fprintf(out, "removed %s\n", name)
	}
	return nil
}

func newVerify() *cobra.Command {
	of, output := &source{}, ""
	command := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "read a snapshot, or the store, whole, and tell what is in it",
		Long: "verify reads all of a snapshot, and compares it with the record beside it. Without a FILE it reads\n" +
			"the store of this machine's mesh, or of an etcd cluster: what both hold has the same checksum.",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return daemon.UsageError(fmt.Errorf("unexpected argument %q", args[1]))
			case len(args) == 1 && len(of.cluster.Servers) > 0:
				return daemon.UsageError(errors.New("--etcd-servers: a file is verified by itself"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if len(args) == 0 {
				content, err := of.read(c.Context())
				if err != nil {
					return err
				}
				return writeContent(c.OutOrStdout(), content, nil, output)
			}
			content, record, err := Verify(args[0])
			if err != nil {
				return err
			}
			if err := writeContent(c.OutOrStdout(), content, record, output); err != nil || output != "" {
				return err
			}
			if record == nil {
				fmt.Fprintln(c.OutOrStdout(), "no record of what was taken stands beside it")
				return nil
			}
			fmt.Fprintf(c.OutOrStdout(), "as it was taken at %s\n", record.Taken.Format(time.RFC3339))
			return nil
		},
	}
	of.addFlags(command.Flags())
	addOutput(command.Flags(), &output)
	return command
}

func writeContent(out io.Writer, content Content, record *Record, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Content
			Record *Record `json:"record,omitempty"`
		}{content, record})
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "KIND\tKEYS")
	for _, kind := range slices.Sorted(maps.Keys(content.Kinds)) {
		fmt.Fprintf(table, "%s\t%d\n", kind, content.Kinds[kind])
	}
	table.Flush()
	fmt.Fprintf(out, "\nwhole: %d keys at revision %d, %s\n", content.Keys, content.Revision, content.Checksum)
	if content.Identity != "" {
		fmt.Fprintf(out, "of the mesh %s\n", content.Identity)
	}
	return nil
}

func newRestore() *cobra.Command {
	r := &restoring{}
	command := &cobra.Command{
		Use: "restore FILE", Short: "make a snapshot the store of a mesh whose apiserver does not run",
		Long: "restore makes a snapshot the store of this machine's mesh, whose apiserver must not run. Nothing is\n" +
			"lost: a store that is there is kept under another name. Clients notice that the store is another.",
		Args: one("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			r.file, r.now = args[0], time.Now()
			done, err := r.restore(c.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s holds %d keys of revision %d, now at %d\n", done.store, done.content.Keys,
				done.content.Revision, done.revision)
			if done.kept != "" {
				fmt.Fprintf(c.OutOrStdout(), "the store that was there is kept as %s\n", done.kept)
			}
			return nil
		},
	}
	addDataDir(command.Flags(), &r.dataDir)
	command.Flags().BoolVar(
		&r.replace,
		"replace",
		false,
		"keep a store that is there under another name, and take its place",
	)
	command.Flags().BoolVar(&r.otherMesh, "other-mesh", false,
		"restore the snapshot of another mesh, which the directory is of from then on")
	return command
}
