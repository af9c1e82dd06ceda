// Package rolebinding is the resource RoleBinding of group rbac.authorization.k8s.io.
//
//keelson:decision
package rolebinding

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the RoleBinding.
var Resource = resource.Resource[*rbacv1.RoleBinding]{
	Group:    rbacv1.GroupName,
	Name:     "rolebindings",
	Singular: "rolebinding",
	New:      func() *rbacv1.RoleBinding { return &rbacv1.RoleBinding{} },
	NewList:  func() runtime.Object { return &rbacv1.RoleBindingList{} },
	Default:  Default,
	Strategy: policy.BindingStrategy(Parts, true),
	Columns:  policy.BindingColumns(Parts),
}

// Default fills in the API groups that a RoleBinding leaves out.
func Default(b *rbacv1.RoleBinding) { policy.DefaultBinding(&b.RoleRef, b.Subjects) }

// Parts are what the binding connects.
func Parts(b *rbacv1.RoleBinding) (*rbacv1.RoleRef, []rbacv1.Subject) { return &b.RoleRef, b.Subjects }
