// Package role is the resource Role of group rbac.authorization.k8s.io.
package role

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Resource is the Role without its guard.
var Resource = rest.Resource[*rbacv1.Role]{
	Group:    rbacv1.GroupName,
	Name:     "roles",
	Singular: "role",
	New:      func() *rbacv1.Role { return &rbacv1.Role{} },
	NewList:  func() runtime.Object { return &rbacv1.RoleList{} },
	Strategy: rest.Strategy[*rbacv1.Role]{Name: rest.PathSegmentName, Validate: Validate, CreateOnUpdate: true},
	Columns:  policy.RoleColumns[*rbacv1.Role](),
}

// Entry is the Role behind the guard against escalation.
func Entry(authority policy.Authority) rest.Entry {
	return policy.GuardRole(Resource, authority, rulesOf, grantsTheSame)
}

// Validate returns what is wrong with a Role.
func Validate(r *rbacv1.Role) field.ErrorList { return policy.ValidateRules(r.Rules, true) }

func rulesOf(r *rbacv1.Role) []rbacv1.PolicyRule { return r.Rules }

func grantsTheSame(r, old *rbacv1.Role) bool { return equality.Semantic.DeepEqual(r.Rules, old.Rules) }
