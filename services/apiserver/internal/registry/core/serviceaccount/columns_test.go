package serviceaccount

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// The secrets are counted.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
