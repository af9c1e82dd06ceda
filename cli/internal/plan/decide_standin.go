package plan

import (
	"fmt"
	"path/filepath"
	"slices"
)

// StandInNetworkFile stands for a node's network while its Pods are removed and no other configuration is there:
// containerd lets no Pod go without one. The name comes after those of others.
const StandInNetworkFile = "99-keelson-down.conflist"

// NeedsStandInNetwork tells whether containerd finds no network among the files of its folder.
func NeedsStandInNetwork(files []string) bool {
	return !slices.ContainsFunc(files, func(file string) bool {
		// The extensions are those that libcni reads.
		configures := slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(file))
		return configures && file != StandInNetworkFile
	})
}

// StandInNetwork has the name of the node's own network, after which the library of the plugins names what it keeps of
// a Pod. Its plugin needs nothing of the machine: links go with a Pod's namespace, and keel sweeps the rest.
func StandInNetwork(bridge string) string {
	return fmt.Sprintf("{\"cniVersion\": \"1.0.0\", \"name\": %q, \"plugins\": [{\"type\": \"loopback\"}]}\n", bridge)
}
