// Package match has what webhooks and policies have in common: which requests they are about, and with which
// parameters.
//
//keelson:decision
package match

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/defaults"
	"keelson.dev/kit/fieldcheck"
)

const anything = "*"

// DefaultRules makes rules that do not say which scope they are about be about all.
func DefaultRules(rules []admissionregistrationv1.RuleWithOperations) {
	for i := range rules {
		defaultRule(&rules[i].Rule)
	}
}

func defaultRule(r *admissionregistrationv1.Rule) {
	defaults.SetPtr(&r.Scope, admissionregistrationv1.AllScopes)
}

// Rules returns what is wrong with rules.
func Rules(rules []admissionregistrationv1.RuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		errs = append(errs, rule(&rules[i], path.Index(i))...)
	}
	return errs
}

func rule(r *admissionregistrationv1.RuleWithOperations, path *field.Path) field.ErrorList {
	errs := alone(r.Operations, path.Child("operations"))
	for i, operation := range r.Operations {
		errs = append(errs, fieldcheck.OneOf(operation, path.Child("operations").Index(i),
			admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update,
			admissionregistrationv1.Delete, admissionregistrationv1.Connect)...)
	}
	// The core group has an empty name.
	errs = append(errs, alone(r.APIGroups, path.Child("apiGroups"))...)
	errs = append(errs, alone(r.APIVersions, path.Child("apiVersions"))...)
	errs = append(errs, named(r.APIVersions, path.Child("apiVersions"))...)
	errs = append(errs, resources(r.Resources, path.Child("resources"))...)
	return append(errs, fieldcheck.OneOfPtr(r.Scope, path.Child("scope"), admissionregistrationv1.AllScopes,
		admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope)...)
}

// alone wants a list to have something, and the asterisk to stand alone.
func alone[S ~string](list []S, path *field.Path) field.ErrorList {
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(path, "")}
	case len(list) > 1 && slices.Contains(list, anything):
		return field.ErrorList{field.Invalid(path, list, "if '*' is present, nothing else may be specified")}
	}
	return nil
}

func named(list []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range list {
		errs = append(errs, fieldcheck.Required(name, path.Index(i), fieldcheck.NotEmpty)...)
	}
	return errs
}

// resources checks a list of pods, pods/status, pods/*, */scale, * and */*: none may be part of another one.
func resources(list []string, path *field.Path) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := named(list, path)
	if len(list) > 1 && slices.Contains(list, "*/*") {
		errs = append(errs, field.Invalid(path, list, "if '*/*' is present, nothing else may be specified"))
	}
	whole := func(text string) bool { return text != anything && text != "" && !strings.Contains(text, "/") }
	if slices.Contains(list, anything) && slices.ContainsFunc(list, whole) {
		errs = append(errs, field.Invalid(path, list,
			"if '*' is present, no other resource without a subresource may be specified"))
	}
	before := sets.New[string]()
	for i, text := range list {
		resource, subresource, has := strings.Cut(text, "/")
		if !has {
			continue
		}
		for _, wider := range []string{resource + "/*", "*/" + subresource} {
			if before.Has(wider) {
				errs = append(errs, field.Invalid(path.Index(i), text,
					fmt.Sprintf("if '%s' is present, %s may not be specified", wider, text)))
			}
		}
		if resource == anything || subresource == anything {
			before.Insert(text)
		}
	}
	return errs
}

// namedRules checks rules that may be confined to some names.
func namedRules(rules []admissionregistrationv1.NamedRuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		at, seen := path.Index(i), sets.New[string]()
		for j, name := range rules[i].ResourceNames {
			in := at.Child("resourceNames").Index(j)
			errs = append(errs, fieldcheck.Messages(name, in, content.IsPathSegmentName(name))...)
			if seen.Has(name) {
				errs = append(errs, field.Duplicate(in, name))
			}
			seen.Insert(name)
		}
		errs = append(errs, rule(&rules[i].RuleWithOperations, at)...)
	}
	return errs
}
