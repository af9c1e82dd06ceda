package role

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/registry/rbac/policy"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

var strategy = rest.Strategy[*rbacv1.Role]{
	Name:           policy.Name,
	Validate:       Validate,
	ValidateUpdate: func(r, _ *rbacv1.Role) field.ErrorList { return Validate(r) },
	CreateOnUpdate: true,
}

// Validate returns what is wrong with a Role.
func Validate(r *rbacv1.Role) field.ErrorList { return policy.ValidateRules(r.Rules, true) }

func rulesOf(r *rbacv1.Role) []rbacv1.PolicyRule { return r.Rules }

func grantsTheSame(r, old *rbacv1.Role) bool { return equality.Semantic.DeepEqual(r.Rules, old.Rules) }
