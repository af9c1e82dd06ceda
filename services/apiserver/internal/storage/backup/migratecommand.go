package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keelson.dev/kit/daemon"
)

// Values of --to.
const (
	toEtcd     = "etcd"
	toEmbedded = "embedded"
)

// quietTime is the default of migrating.quiet: two renewals of a Lease of an apiserver, and a second.
const quietTime = 11 * time.Second

func newMigrate() *cobra.Command {
	m, to := &migrating{}, ""
	command := &cobra.Command{
		Use:   "migrate --to etcd|embedded",
		Short: "move the store of a mesh whose apiserver does not run to an etcd cluster, or back",
		Long: "migrate moves the store of this machine's mesh, whose apiserver must not run, to an etcd cluster, or\n" +
			"back. The source is given up only once both hold the same, and is kept. Wherever it is cut off, the\n" +
			"same command goes on.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return daemon.UsageError(fmt.Errorf("unexpected argument %q", args[0]))
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			m.now = time.Now()
			move := map[string]func(context.Context) (*migrated, error){toEtcd: m.toEtcd, toEmbedded: m.toEmbedded}[to]
			if move == nil {
				return daemon.UsageError(fmt.Errorf("--to: %q must be %s or %s", to, toEtcd, toEmbedded))
			}
			if len(m.cluster.Servers) == 0 {
				return daemon.UsageError(errors.New("--etcd-servers is missing: the client URLs of the etcd cluster"))
			}
			done, err := move(c.Context())
			if err != nil {
				return err
			}
			m.tell(c.OutOrStdout(), to, done)
			return nil
		},
	}
	addDataDir(command.Flags(), &m.dataDir)
	command.Flags().StringVar(&to, "to", "", "where the store is to be: etcd or embedded")
	m.cluster.AddFlags(command.Flags())
	command.Flags().Lookup("etcd-servers").Usage = "client URLs of the etcd cluster"
	command.Flags().DurationVar(&m.quiet, "quiet", quietTime,
		"for how long nothing may be written to a cluster that is left")
	_ = command.Flags().MarkHidden("quiet")
	return command
}

// tell says what became of a move.
func (m *migrating) tell(out io.Writer, to string, done *migrated) {
	place := "the etcd cluster at " + strings.Join(m.cluster.Servers, ",")
	if to == toEmbedded {
		place = m.dataDir
	}
	if done.moved == nil {
		fmt.Fprintf(out, "the store was moved to %s before\n", place)
	} else {
		fmt.Fprintf(out, "%s holds %d keys of revision %d, now at %d, %s\n", place, done.moved.content.Keys,
			done.moved.content.Revision, done.moved.revision, done.moved.content.Checksum)
	}
	if done.moved != nil && done.moved.expired > 0 {
		fmt.Fprintf(out, "%d keys were left out whose time was over\n", done.moved.expired)
	}
	if done.kept != "" {
		fmt.Fprintf(out, "the store that was there is kept as %s\n", done.kept)
	}
	if to == toEmbedded && done.moved != nil {
		fmt.Fprintln(out, "the cluster keeps what it holds, marked so that no apiserver uses it")
	}
}
