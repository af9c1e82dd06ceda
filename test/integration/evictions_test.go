package integration

import (
	"testing"

	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

func TestConcurrentEvictions(t *testing.T) {
	t.Parallel()
	m := inprocess.New(t, inprocess.Options{Nodes: 3, Guarded: true})
	scenario.ConcurrentEvictions(t, m, m.Second(t))
}
