package namespace

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// The phase shows.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
