package deployment

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// DEP-033, DEP-034, DEP-036.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *appsv1.Deployment { return &appsv1.Deployment{} })
}
