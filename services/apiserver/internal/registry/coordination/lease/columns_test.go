package lease

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// The holder shows.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
