package service

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// DEP-225, DEP-226.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
