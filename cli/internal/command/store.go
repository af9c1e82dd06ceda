package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
)

// apiserverProgram is the program that opens stores, with its embedded etcd.
const apiserverProgram = "keelson-apiserver"

// newStore passes its arguments to the apiserver's program, which knows them, and adds the path of the mesh's
// store.
func newStore(g *global) *cobra.Command {
	command := &cobra.Command{
		Use:                "store",
		Short:              "save the mesh's store to a snapshot, verify one, restore it, move it, and tell who has it",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			dataDir, args := takeDataDir(g.either(), args)
			if ofMesh(args) {
				m, err := mesh.Open(dataDir, c.OutOrStdout())
				switch {
				case err == nil:
					if args, err = storeArgs(m, args); err != nil {
						return err
					}
				case args[0] != "verify": // which needs no mesh for a file
					return err
				}
			}
			return handOn(c, apiserverProgram, append([]string{"store"}, args...))
		},
	}
	command.AddCommand(newMigrate(g))
	return command
}

// storeArgs adds where the mesh has its store.
func storeArgs(m *mesh.Mesh, args []string) ([]string, error) {
	etcd := m.State.Etcd
	switch {
	case etcd == nil, args[0] == "verify" && hasOperand(args[1:]):
		return append(args, "--data-dir="+m.Layout.APIServer()), nil
	case args[0] == "snapshot", args[0] == "verify":
		return append(args, etcd.Flags()...), nil
	}
	return nil, fmt.Errorf("the mesh's store is the etcd cluster at %s, whose own tools do that: keel store migrate "+
		"--to embedded moves it back", etcd.At())
}

// hasOperand reports whether there is an argument that is neither a flag nor the value of --output.
func hasOperand(args []string) bool {
	for i, arg := range args {
		value := i > 0 && (args[i-1] == "-o" || args[i-1] == "--output")
		if !value && !strings.HasPrefix(arg, "-") {
			return true
		}
	}
	return false
}

// ofMesh reports whether the arguments may mean the store of this machine's mesh.
func ofMesh(args []string) bool {
	return len(args) > 0 &&
		slices.Contains([]string{"snapshot", "verify", "restore", "members", "remove-member"}, args[0]) &&
		!names(args, "--etcd-servers", "--help", "-h")
}
