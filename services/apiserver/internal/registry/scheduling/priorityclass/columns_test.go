package priorityclass

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// SCH-013.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
