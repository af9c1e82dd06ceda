package clusterrolebinding

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Subjects show by kind.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
