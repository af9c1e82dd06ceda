// Package e2e runs the scenarios on real daemons with real containers, and shows there what only they can show.
package e2e

import (
	"testing"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

func TestScenarios(t *testing.T) {
	m := processes.New(t, 1)
	scenario.RunAll(t, m, scenario.Everywhere)
}
