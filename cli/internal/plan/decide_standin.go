package plan

import (
	"fmt"
	"path/filepath"
	"slices"
)

// StandInNetworkFile is a CNI configuration for the time while a node's Pods are removed and no other
// configuration is there: containerd cannot remove a Pod without one. Its name sorts after those of others.
const StandInNetworkFile = "99-keelson-down.conflist"

// NeedsStandInNetwork reports whether containerd finds no network configuration among the files of its folder.
func NeedsStandInNetwork(files []string) bool {
	return !slices.ContainsFunc(files, func(file string) bool {
		// libcni reads files with these extensions.
		configures := slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(file))
		return configures && file != StandInNetworkFile
	})
}

// StandInNetwork returns a configuration with the name of the node's own network, by which libcni names its
// records of a Pod. Its plugin needs nothing from the machine: links disappear with a Pod's network namespace, and
// keel removes the rest.
func StandInNetwork(bridge string) string {
	return fmt.Sprintf("{\"cniVersion\": \"1.0.0\", \"name\": %q, \"plugins\": [{\"type\": \"loopback\"}]}\n", bridge)
}
