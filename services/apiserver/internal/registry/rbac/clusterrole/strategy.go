package clusterrole

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/registry/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

var strategy = rest.Strategy[*rbacv1.ClusterRole]{
	ClusterScoped:  true,
	Name:           policy.Name,
	Validate:       Validate,
	ValidateUpdate: func(r, _ *rbacv1.ClusterRole) field.ErrorList { return Validate(r) },
	CreateOnUpdate: true,
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
		errs = append(errs, field.Required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range selectors {
		errs = append(errs, fieldcheck.LabelSelector(&selectors[i], path.Index(i))...)
	}
	return errs
}

// rulesOf returns what the role grants. One that takes its rules from other roles can come to grant anything.
func rulesOf(r *rbacv1.ClusterRole) []rbacv1.PolicyRule {
	if r.AggregationRule != nil {
		return everything
	}
	return r.Rules
}

func grantsTheSame(r, old *rbacv1.ClusterRole) bool {
	return equality.Semantic.DeepEqual(r.Rules, old.Rules) && equality.Semantic.DeepEqual(r.AggregationRule, old.AggregationRule)
}
