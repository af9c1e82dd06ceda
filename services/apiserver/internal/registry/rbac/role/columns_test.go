package role

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Roles show when they were made.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
