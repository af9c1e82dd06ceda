package integration

import (
	"testing"

	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

// The mesh gets another node, which the other scenarios do not expect.
func TestDaemonSetOnJoiningNode(t *testing.T) {
	scenario.DaemonSetOnJoiningNode(t, inprocess.New(t, inprocess.Options{Nodes: 1, Guarded: true}))
}
