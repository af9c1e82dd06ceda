package node

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Readiness, cordoning and roles show.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
