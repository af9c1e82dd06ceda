// Package runtimetest lets the tests of a whole mesh check a real container runtime against what the nodeagent relies
// on.
package runtimetest

import (
	"testing"

	"go.uber.org/zap"

	"keelson.dev/services/nodeagent/internal/runtime/conformance"
	"keelson.dev/services/nodeagent/internal/runtime/cri"
)

// Options say what the suite runs with.
type Options = conformance.Options

// Run runs the suite of the contract against the CRI runtime at an endpoint, unix:///PATH.
func Run(t *testing.T, endpoint string, o Options) {
	r, err := cri.Connect(endpoint, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing the connection: %v", err)
		}
	})
	conformance.Run(t, r, o)
}
