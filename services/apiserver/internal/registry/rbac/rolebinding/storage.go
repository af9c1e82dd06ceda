// Package rolebinding is the resource RoleBinding of group rbac.authorization.k8s.io.
package rolebinding

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*rbacv1.RoleBinding]{
	Group:    rbacv1.GroupName,
	Name:     "rolebindings",
	Singular: "rolebinding",
	New:      func() *rbacv1.RoleBinding { return &rbacv1.RoleBinding{} },
	NewList:  func() runtime.Object { return &rbacv1.RoleBindingList{} },
	Default:  Default,
	Strategy: strategy,
	Columns:  policy.BindingColumns(parts),
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the store behind the guard against escalation.
func NewStorage(o rest.Options, authority policy.Authority) (map[string]genericrest.Storage, error) {
	return policy.NewBindingStorage(resource, o, authority, parts)
}
