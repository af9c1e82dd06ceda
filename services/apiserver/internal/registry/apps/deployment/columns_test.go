package deployment

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// DEP-033, DEP-034, DEP-036.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
