package e2e

import (
	"testing"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// The agent of one node of two is killed; podgc waits 20 seconds for it, since agents renew their Lease every 10.
func TestNodeFailure(t *testing.T) {
	m := processes.New(t, 2)
	m.Restart(t, mesh.PodGC, "--node-monitor-grace-period=20s", "--node-eviction-rate=10")
	scenario.NodeFailure(t, m)
}
