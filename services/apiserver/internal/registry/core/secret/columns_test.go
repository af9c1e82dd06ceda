package secret

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Values never show.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
