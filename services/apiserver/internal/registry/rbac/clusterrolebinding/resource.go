// Package clusterrolebinding is the resource ClusterRoleBinding of group rbac.authorization.k8s.io.
//
//keelson:decision
package clusterrolebinding

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the ClusterRoleBinding.
var Resource = resource.Resource[*rbacv1.ClusterRoleBinding]{
	Group:         rbacv1.GroupName,
	Name:          "clusterrolebindings",
	Singular:      "clusterrolebinding",
	ClusterScoped: true,
	New:           func() *rbacv1.ClusterRoleBinding { return &rbacv1.ClusterRoleBinding{} },
	NewList:       func() runtime.Object { return &rbacv1.ClusterRoleBindingList{} },
	Default:       Default,
	Strategy:      policy.BindingStrategy(Parts, false),
	Columns:       policy.BindingColumns(Parts),
}

// Default fills in the API groups that a ClusterRoleBinding leaves out.
func Default(b *rbacv1.ClusterRoleBinding) { policy.DefaultBinding(&b.RoleRef, b.Subjects) }

// Parts are what the binding connects.
func Parts(b *rbacv1.ClusterRoleBinding) (*rbacv1.RoleRef, []rbacv1.Subject) {
	return &b.RoleRef, b.Subjects
}
