// Package policy holds what the four RBAC resources share: the rules of roles, and the subjects and role references
// of bindings.
//
//keelson:decision
package policy

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// Kinds of a role reference and of a subject.
const (
	kindRole        = "Role"
	kindClusterRole = "ClusterRole"
)

// ValidateRules checks the rules of a role; those of a namespaced one cannot name URLs.
func ValidateRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		errs = append(errs, validateRule(&rules[i], namespaced, field.NewPath("rules").Index(i))...)
	}
	return errs
}

func validateRule(rule *rbacv1.PolicyRule, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(rule.Verbs) == 0 {
		errs = append(errs, field.Required(path.Child("verbs"), "verbs must contain at least one value"))
	}
	if len(rule.NonResourceURLs) > 0 {
		return append(errs, validateURLs(rule, namespaced, path.Child("nonResourceURLs"))...)
	}
	if len(rule.APIGroups) == 0 {
		errs = append(errs, field.Required(path.Child("apiGroups"),
			"resource rules must supply at least one api group"))
	}
	if len(rule.Resources) == 0 {
		errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
	}
	return errs
}

func validateURLs(rule *rbacv1.PolicyRule, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if namespaced {
		errs = append(errs, field.Invalid(path, rule.NonResourceURLs,
			"namespaced rules cannot apply to non-resource URLs"))
	}
	if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
		errs = append(errs, field.Invalid(path, rule.NonResourceURLs,
			"rules cannot apply to both regular resources and non-resource URLs"))
	}
	return errs
}

// ValidateBinding checks a binding's role reference and subjects. A cluster-wide one can refer to ClusterRoles only and
// must say the namespace of its ServiceAccounts.
func ValidateBinding(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	path := field.NewPath("roleRef")
	kinds := []string{kindClusterRole}
	if namespaced {
		kinds = []string{kindClusterRole, kindRole}
	}
	errs := fieldcheck.OneOf(ref.APIGroup, path.Child("apiGroup"), rbacv1.GroupName)
	errs = append(errs, fieldcheck.OneOf(ref.Kind, path.Child("kind"), kinds...)...)
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, fieldcheck.Messages(ref.Name, path.Child("name"), content.IsPathSegmentName(ref.Name))...)
	}
	for i := range subjects {
		errs = append(errs, validateSubject(&subjects[i], namespaced, field.NewPath("subjects").Index(i))...)
	}
	return errs
}

// ValidateBindingUpdate wants the role reference to stay: who may change it could otherwise hand out any role.
func ValidateBindingUpdate(ref, old rbacv1.RoleRef) field.ErrorList {
	if ref == old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), ref, "cannot change roleRef")}
}

func validateSubject(subject *rbacv1.Subject, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if subject.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		if subject.Name != "" {
			errs = append(errs, fieldcheck.Messages(subject.Name, path.Child("name"),
				apivalidation.ValidateServiceAccountName(subject.Name, false))...)
		}
		errs = append(errs, fieldcheck.OneOf(subject.APIGroup, path.Child("apiGroup"), "")...)
		if !namespaced && subject.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		errs = append(errs, fieldcheck.OneOf(subject.APIGroup, path.Child("apiGroup"), rbacv1.GroupName)...)
	default:
		errs = append(errs, fieldcheck.OneOf(subject.Kind, path.Child("kind"),
			rbacv1.GroupKind, rbacv1.ServiceAccountKind, rbacv1.UserKind)...)
	}
	return errs
}
