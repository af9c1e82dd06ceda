package integration

import (
	"testing"

	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

func TestSettled(t *testing.T) {
	t.Parallel()
	scenario.Settled(t, inprocess.New(t, inprocess.Options{Nodes: 2, Guarded: true}))
}
