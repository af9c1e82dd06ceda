package command

import (
	"slices"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
)

// apiserverProgram is the program that opens stores, with its embedded etcd.
const apiserverProgram = "keelson-apiserver"

// newStore passes its arguments to the apiserver's program, which knows them, and adds the path of the mesh's
// store.
func newStore(g *global) *cobra.Command {
	return &cobra.Command{
		Use:                "store",
		Short:              "save the mesh's store to a snapshot, verify one, restore it, and tell who has it",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			dataDir, args := takeDataDir(g.either(), args)
			if ofMesh(args) {
				m, err := mesh.Open(dataDir, c.OutOrStdout())
				switch {
				case err == nil:
					args = append(args, "--data-dir="+m.Layout.APIServer())
				case args[0] != "verify": // which needs no mesh for a file
					return err
				}
			}
			return handOn(c, apiserverProgram, append([]string{"store"}, args...))
		},
	}
}

// ofMesh reports whether the arguments may mean the store of this machine's mesh.
func ofMesh(args []string) bool {
	return len(args) > 0 &&
		slices.Contains([]string{"snapshot", "verify", "restore", "members", "remove-member"}, args[0]) &&
		!names(args, "--etcd-servers", "--help", "-h")
}
