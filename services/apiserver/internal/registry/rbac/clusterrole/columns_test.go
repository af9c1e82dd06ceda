package clusterrole

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Roles show when they were made.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, resource.Columns, func() *rbacv1.ClusterRole { return &rbacv1.ClusterRole{} })
}
