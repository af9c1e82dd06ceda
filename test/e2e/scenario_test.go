// Package e2e runs the scenarios on real daemons with real containers, and shows there what only they can show.
package e2e

import (
	"os"
	"slices"
	"testing"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

func TestScenarios(t *testing.T) {
	m := processes.New(t, 1)
	scenario.RunAll(t, m, slices.Concat(scenario.Contained, scenario.Everywhere))
	kubectl := slices.Concat(scenario.KubectlContained, scenario.Kubectl)
	if os.Getenv("KEELSON_ALL") != "" { // make test-all
		kubectl = append(kubectl, scenario.KubectlObjects...)
	}
	t.Run("Kubectl", func(t *testing.T) { scenario.RunSideBySide(t, m, kubectl) })
	t.Run("Operator", func(t *testing.T) { operates(t, m) })
	t.Run("ChartWithAKind", func(t *testing.T) { bringsAKind(t, m) })
	t.Run("Metrics", func(t *testing.T) { expectMetrics(t, m) })
	t.Run("Registries", func(t *testing.T) { expectRegistries(t, m) })
	t.Run("Console", func(t *testing.T) { expectConsole(t, m) })
	t.Run("RuntimeContract", func(t *testing.T) { expectContract(t, m) })
	t.Run("NothingIsLeft", func(t *testing.T) { expectNothingLeft(t, m) })
}
