package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"keelson.dev/cli/internal/plan"
)

// EnsureNetwork writes a stand-in for a node without any network configuration, which its containerd reads at its
// next start. RemoveStandIn removes it.
func EnsureNetwork(files plan.NodeLayout, bridge string) error {
	dir := files.CNI("conf")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for the network of %s: %w", files.Name, err)
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	if !plan.NeedsStandInNetwork(names) {
		return nil
	}
	// A file that a killed keel has left incomplete is rewritten.
	if err := errors.Join(os.MkdirAll(dir, 0o711), RemoveStandIn(files),
		os.WriteFile(filepath.Join(dir, plan.StandInNetworkFile), []byte(plan.StandInNetwork(bridge)), 0o600),
	); err != nil {
		return fmt.Errorf("writing a network for the removal of the Pods of %s: %w", files.Name, err)
	}
	return nil
}

// RemoveStandIn removes what EnsureNetwork has written. No Pod may start with it.
func RemoveStandIn(files plan.NodeLayout) error {
	err := os.Remove(filepath.Join(files.CNI("conf"), plan.StandInNetworkFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the network that stood in on %s: %w", files.Name, err)
	}
	return nil
}
