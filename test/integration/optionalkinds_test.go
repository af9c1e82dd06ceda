package integration

import (
	"testing"

	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

func TestOptionalKindsNotServed(t *testing.T) {
	t.Parallel()
	off := map[string]string{
		"resource.k8s.io/v1": "false", "scheduling.k8s.io/v1beta1": "false", "policy/v1/poddisruptionbudgets": "false",
		"apps/v1/statefulsets": "false", "batch/v1": "false",
	}
	scenario.OptionalKindsNotServed(t, inprocess.New(t, inprocess.Options{Nodes: 2, Guarded: true, RuntimeConfig: off}))
}
