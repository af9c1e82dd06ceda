package integration

import (
	"testing"

	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

func TestNoWritesAtRest(t *testing.T) {
	t.Parallel()
	scenario.NoWritesAtRest(t, inprocess.New(t, inprocess.Options{Nodes: 2, Guarded: true}))
}
