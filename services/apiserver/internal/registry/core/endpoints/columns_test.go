package endpoints

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Three addresses show, the rest is counted.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
