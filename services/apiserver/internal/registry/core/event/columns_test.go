package event

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// POD-223, DEP-056: both forms show when, how often and from where.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
