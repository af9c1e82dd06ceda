package rolebinding

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
)

var strategy = policy.BindingStrategy(parts, true)

// Default fills in the API groups that a RoleBinding leaves out.
func Default(b *rbacv1.RoleBinding) { policy.DefaultBinding(&b.RoleRef, b.Subjects) }

func parts(b *rbacv1.RoleBinding) (*rbacv1.RoleRef, []rbacv1.Subject) { return &b.RoleRef, b.Subjects }
