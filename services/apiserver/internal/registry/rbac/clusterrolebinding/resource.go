// Package clusterrolebinding is the resource ClusterRoleBinding of group rbac.authorization.k8s.io.
package clusterrolebinding

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Resource is the ClusterRoleBinding without its guard.
var Resource = rest.Resource[*rbacv1.ClusterRoleBinding]{
	Group:         rbacv1.GroupName,
	Name:          "clusterrolebindings",
	Singular:      "clusterrolebinding",
	ClusterScoped: true,
	New:           func() *rbacv1.ClusterRoleBinding { return &rbacv1.ClusterRoleBinding{} },
	NewList:       func() runtime.Object { return &rbacv1.ClusterRoleBindingList{} },
	Default:       Default,
	Strategy:      policy.BindingStrategy(parts, false),
	Columns:       policy.BindingColumns(parts),
}

// Entry is the ClusterRoleBinding behind the guard against escalation.
func Entry(authority policy.Authority) rest.Entry {
	return policy.GuardBinding(Resource, authority, parts)
}

// Default fills in the API groups that a ClusterRoleBinding leaves out.
func Default(b *rbacv1.ClusterRoleBinding) { policy.DefaultBinding(&b.RoleRef, b.Subjects) }

func parts(b *rbacv1.ClusterRoleBinding) (*rbacv1.RoleRef, []rbacv1.Subject) {
	return &b.RoleRef, b.Subjects
}
