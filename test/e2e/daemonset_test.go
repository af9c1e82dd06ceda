package e2e

import (
	"testing"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// The mesh gets a node more than it had, which the other scenarios do not expect.
func TestDaemonSetOnJoiningNode(t *testing.T) {
	scenario.DaemonSetOnJoiningNode(t, processes.New(t, 1))
}
