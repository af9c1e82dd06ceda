package integration

import (
	"testing"

	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

func TestEvictedAtOnce(t *testing.T) {
	t.Parallel()
	m := inprocess.New(t, inprocess.Options{Nodes: 3, Guarded: true})
	scenario.EvictedAtOnce(t, m, m.Second(t))
}
