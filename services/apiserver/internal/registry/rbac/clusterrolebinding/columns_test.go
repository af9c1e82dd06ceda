package clusterrolebinding

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Subjects show by kind.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, resource.Columns, func() *rbacv1.ClusterRoleBinding { return &rbacv1.ClusterRoleBinding{} })
}
