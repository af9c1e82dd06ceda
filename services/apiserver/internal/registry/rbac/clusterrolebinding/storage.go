// Package clusterrolebinding is the resource ClusterRoleBinding of group rbac.authorization.k8s.io.
package clusterrolebinding

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*rbacv1.ClusterRoleBinding]{
	Group:    rbacv1.GroupName,
	Name:     "clusterrolebindings",
	Singular: "clusterrolebinding",
	New:      func() *rbacv1.ClusterRoleBinding { return &rbacv1.ClusterRoleBinding{} },
	NewList:  func() runtime.Object { return &rbacv1.ClusterRoleBindingList{} },
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
