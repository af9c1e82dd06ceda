package match

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
	"keelson.dev/kit/fieldcheck"
)

// Default fills in what m leaves out; nil: nothing is said.
func Default(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	defaults.SetPtr(&m.MatchPolicy, admissionregistrationv1.Equivalent)
	defaults.SetPtr(&m.NamespaceSelector, metav1.LabelSelector{})
	defaults.SetPtr(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			defaultRule(&rules[i].Rule)
		}
	}
}

// Resources returns what is wrong with m; nil is about everything.
func Resources(m *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	errs := fieldcheck.RequiredOneOf(ptr.Deref(m.MatchPolicy, ""), path.Child("matchPolicy"),
		admissionregistrationv1.Equivalent, admissionregistrationv1.Exact)
	errs = append(errs, selector(m.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, selector(m.ObjectSelector, path.Child("objectSelector"))...)
	errs = append(errs, namedRules(m.ResourceRules, path.Child("resourceRules"))...)
	return append(errs, namedRules(m.ExcludeResourceRules, path.Child("excludeResourceRules"))...)
}

// Constraints returns what is wrong with what a policy is about: it must say so by a rule at least.
func Constraints(m *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := Resources(m, path)
	if len(m.ResourceRules) == 0 {
		errs = append(errs, field.Required(path.Child("resourceRules"), ""))
	}
	return errs
}

func selector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	return fieldcheck.LabelSelector(s, path)
}

// NoDeletes refuses rules about deletions: there is nothing to change. The asterisk leaves them out.
func NoDeletes(m *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	var errs field.ErrorList
	for i := range m.ResourceRules {
		for j, operation := range m.ResourceRules[i].Operations {
			if operation == admissionregistrationv1.Delete {
				errs = append(
					errs,
					field.NotSupported(path.Child("resourceRules").Index(i).Child("operations").Index(j),
						operation, []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll,
							admissionregistrationv1.Connect, admissionregistrationv1.Create,
							admissionregistrationv1.Update}),
				)
			}
		}
	}
	return errs
}
