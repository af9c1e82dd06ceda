// Package clusterrole is the resource ClusterRole of group rbac.authorization.k8s.io.
//
//keelson:decision
package clusterrole

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the ClusterRole.
var Resource = resource.Resource[*rbacv1.ClusterRole]{
	Group:         rbacv1.GroupName,
	Name:          "clusterroles",
	Singular:      "clusterrole",
	ClusterScoped: true,
	New:           func() *rbacv1.ClusterRole { return &rbacv1.ClusterRole{} },
	NewList:       func() runtime.Object { return &rbacv1.ClusterRoleList{} },
	Strategy: resource.Strategy[*rbacv1.ClusterRole]{
		Name: resource.PathSegmentName, Validate: Validate, CreateOnUpdate: true,
	},
	Columns: policy.RoleColumns[*rbacv1.ClusterRole](),
}

// everything is what an aggregated role may come to hold.
var everything = []rbacv1.PolicyRule{
	{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
}

// Validate returns what is wrong with a ClusterRole.
func Validate(r *rbacv1.ClusterRole) field.ErrorList {
	errs := policy.ValidateRules(r.Rules, false)
	if r.AggregationRule == nil {
		return errs
	}
	path := field.NewPath("aggregationRule", "clusterRoleSelectors")
	selectors := r.AggregationRule.ClusterRoleSelectors
	if len(selectors) == 0 {
		errs = append(errs, field.Required(path,
			"at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range selectors {
		errs = append(errs, fieldcheck.LabelSelector(&selectors[i], path.Index(i))...)
	}
	return errs
}

// RulesOf returns what the role grants. One that takes its rules from other roles can come to grant anything.
func RulesOf(r *rbacv1.ClusterRole) []rbacv1.PolicyRule {
	if r.AggregationRule != nil {
		return everything
	}
	return r.Rules
}

// GrantsTheSame tells that r grants nothing that old does not.
func GrantsTheSame(r, old *rbacv1.ClusterRole) bool {
	return equality.Semantic.DeepEqual(r.Rules, old.Rules) && equality.Semantic.DeepEqual(r.AggregationRule,
		old.AggregationRule)
}
