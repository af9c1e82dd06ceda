package lease

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// The holder shows.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *coordinationv1.Lease { return &coordinationv1.Lease{} })
}
