package integration

import (
	"slices"
	"testing"

	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

func TestKubectl(t *testing.T) {
	m := inprocess.New(t, inprocess.Options{Nodes: 3})
	for _, s := range slices.Concat(scenario.Kubectl, scenario.KubectlObjects, scenario.KubectlSimulated) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			s.Run(t, m)
		})
	}
}
