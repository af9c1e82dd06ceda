// Package integration runs the scenarios on a mesh in one process, with simulated nodes.
package integration

import (
	"slices"
	"testing"

	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

func TestScenarios(t *testing.T) {
	m := inprocess.New(t, inprocess.Options{Nodes: 3, Guarded: true})
	scenario.RunAll(t, m, slices.Concat(scenario.Everywhere, scenario.Simulated))
}
