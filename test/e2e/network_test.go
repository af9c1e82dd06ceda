package e2e

import (
	"testing"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestNetwork runs the scenarios of Services and names on a mesh with cluster DNS.
func TestNetwork(t *testing.T) {
	scenario.RunAll(t, processes.New(t, 1, processes.WithDNS), scenario.Networked)
}
