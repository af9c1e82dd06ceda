package clusterrolebinding

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
)

var strategy = policy.BindingStrategy(parts, false)

// Default fills in the API groups that a ClusterRoleBinding leaves out.
func Default(b *rbacv1.ClusterRoleBinding) { policy.DefaultBinding(&b.RoleRef, b.Subjects) }

func parts(b *rbacv1.ClusterRoleBinding) (*rbacv1.RoleRef, []rbacv1.Subject) {
	return &b.RoleRef, b.Subjects
}
