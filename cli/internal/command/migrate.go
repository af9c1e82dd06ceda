package command

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
)

// migrateFlags are the typed flags of keel store migrate.
type migrateFlags struct {
	to   string
	etcd plan.Etcd
}

func newMigrate(g *global) *cobra.Command {
	flags := &migrateFlags{}
	command := &cobra.Command{
		Use:   "migrate --to etcd|embedded",
		Short: "move the mesh's store to an etcd cluster, or back, while its apiserver does not run",
		Long: "migrate moves the store of this machine's mesh to an etcd cluster, or back into the data directory.\n" +
			"The apiserver must not run. The source is given up only once both hold the same, by a checksum over\n" +
			"all objects, and is kept. The next start of the apiserver uses the new store. Wherever migrate is cut\n" +
			"off, the same command goes on.",
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			move, err := flags.move()
			if err != nil {
				return usageError{err}
			}
			m, err := mesh.Open(g.either(), c.OutOrStdout())
			if err != nil {
				return err
			}
			move.Run = func(args []string) error {
				return handOn(c, apiserverProgram, append([]string{"store"}, args...))
			}
			//nolint:forbidigo // The move takes as long as the store is large, and its end must be recorded.
			return m.MoveStore(c.Context(), move)
		},
	}
	set := command.Flags()
	set.StringVar(&flags.to, "to", "", "where the store is to be: etcd or embedded")
	set.StringSliceVar(&flags.etcd.Servers, "etcd-servers", nil, "client URLs of the etcd cluster; default: those "+
		"that keel store migrate has recorded")
	set.StringVar(&flags.etcd.CAFile, "etcd-cafile", "", "PEM bundle that verifies --etcd-servers")
	set.StringVar(&flags.etcd.CertFile, "etcd-certfile", "", "PEM client certificate for --etcd-servers")
	set.StringVar(&flags.etcd.KeyFile, "etcd-keyfile", "", "PEM key of --etcd-certfile")
	return command
}

// move checks the flags. Without any of the cluster's, the recorded cluster is meant.
func (f *migrateFlags) move() (mesh.StoreMove, error) {
	move := mesh.StoreMove{Embedded: f.to == "embedded"}
	if f.to != "etcd" && !move.Embedded {
		return move, fmt.Errorf("--to: %q must be etcd or embedded", f.to)
	}
	if len(f.etcd.Servers) == 0 && f.etcd.CAFile == "" && f.etcd.CertFile == "" && f.etcd.KeyFile == "" {
		return move, nil
	}
	etcd := f.etcd
	for _, file := range []*string{&etcd.CAFile, &etcd.CertFile, &etcd.KeyFile} {
		if *file == "" {
			continue
		}
		absolute, err := filepath.Abs(*file)
		if err != nil {
			return move, fmt.Errorf("making %s absolute: %w", *file, err)
		}
		*file = absolute
	}
	move.Etcd = &etcd
	return move, etcd.Check()
}
