package configmap

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Both kinds of data count.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
