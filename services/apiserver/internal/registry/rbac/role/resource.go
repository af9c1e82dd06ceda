// Package role is the resource Role of group rbac.authorization.k8s.io.
//
//keelson:decision
package role

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the Role.
var Resource = resource.Resource[*rbacv1.Role]{
	Group:    rbacv1.GroupName,
	Name:     "roles",
	Singular: "role",
	New:      func() *rbacv1.Role { return &rbacv1.Role{} },
	NewList:  func() runtime.Object { return &rbacv1.RoleList{} },
	Strategy: resource.Strategy[*rbacv1.Role]{Name: resource.PathSegmentName, Validate: Validate, CreateOnUpdate: true},
	Columns:  policy.RoleColumns[*rbacv1.Role](),
}

// Validate returns what is wrong with a Role.
func Validate(r *rbacv1.Role) field.ErrorList { return policy.ValidateRules(r.Rules, true) }

// RulesOf returns what the role grants.
func RulesOf(r *rbacv1.Role) []rbacv1.PolicyRule { return r.Rules }

// GrantsTheSame tells that r grants nothing that old does not.
func GrantsTheSame(r, old *rbacv1.Role) bool { return equality.Semantic.DeepEqual(r.Rules, old.Rules) }
