// Package clusterrole is the resource ClusterRole of group rbac.authorization.k8s.io.
package clusterrole

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*rbacv1.ClusterRole]{
	Group:    rbacv1.GroupName,
	Name:     "clusterroles",
	Singular: "clusterrole",
	New:      func() *rbacv1.ClusterRole { return &rbacv1.ClusterRole{} },
	NewList:  func() runtime.Object { return &rbacv1.ClusterRoleList{} },

	Strategy: strategy,
	Columns:  policy.RoleColumns[*rbacv1.ClusterRole](),
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the store behind the guard against escalation.
func NewStorage(o rest.Options, authority policy.Authority) (map[string]genericrest.Storage, error) {
	return policy.NewRoleStorage(resource, o, authority, rulesOf, grantsTheSame)
}
