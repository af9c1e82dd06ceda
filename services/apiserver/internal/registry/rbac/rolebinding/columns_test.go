package rolebinding

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Subjects show by kind.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, resource.Columns, func() *rbacv1.RoleBinding { return &rbacv1.RoleBinding{} })
}
