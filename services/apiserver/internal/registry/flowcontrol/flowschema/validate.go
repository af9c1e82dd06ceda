package flowschema

import (
	"fmt"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"keelson.dev/kit/fieldcheck"
)

// verbs are those that a rule may name.
var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}

// all matches each member of what a list of a rule names.
const all = "*"

// Validate returns what is wrong with a FlowSchema.
func Validate(s *flowcontrolv1.FlowSchema) field.ErrorList {
	path := field.NewPath("spec")
	errs := validatePrecedence(s, path.Child("matchingPrecedence"))
	if method := s.Spec.DistinguisherMethod; method != nil {
		errs = append(errs, fieldcheck.OneOf(method.Type, path.Child("distinguisherMethod", "type"),
			flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType)...)
	}
	errs = append(errs, fieldcheck.Required(s.Spec.PriorityLevelConfiguration.Name,
		path.Child("priorityLevelConfiguration", "name"), fieldcheck.DNSSubdomain)...)
	for i := range s.Spec.Rules {
		errs = append(errs, validateRule(&s.Spec.Rules[i], path.Child("rules").Index(i))...)
	}
	return append(errs, validateMandatory(s, path)...)
}

func validatePrecedence(s *flowcontrolv1.FlowSchema, path *field.Path) field.ErrorList {
	precedence, most := s.Spec.MatchingPrecedence, flowcontrolv1.FlowSchemaMaxMatchingPrecedence
	switch {
	case precedence <= 0:
		return field.ErrorList{field.Invalid(path, precedence, fieldcheck.MustBePositive)}
	case precedence > most:
		return field.ErrorList{field.Invalid(path, precedence, fmt.Sprintf("must not be greater than %d", most))}
	case precedence == 1 && s.Name != flowcontrolv1.FlowSchemaNameExempt:
		return field.ErrorList{field.Invalid(path, precedence, "only the schema named 'exempt' may have precedence 1")}
	}
	return nil
}

// validateMandatory wants the schemas that flow control cannot do without to be as they are.
func validateMandatory(s *flowcontrolv1.FlowSchema, path *field.Path) field.ErrorList {
	for _, mandatory := range bootstrap.MandatoryFlowSchemas {
		if mandatory.Name == s.Name && !equality.Semantic.DeepEqual(mandatory.Spec, s.Spec) {
			return field.ErrorList{field.Invalid(path, s.Spec, fmt.Sprintf("the spec of '%s' is fixed", s.Name))}
		}
	}
	return nil
}

func validateRule(r *flowcontrolv1.PolicyRulesWithSubjects, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Subjects) == 0 {
		errs = append(errs, field.Required(path.Child("subjects"), ""))
	}
	for i := range r.Subjects {
		errs = append(errs, validateSubject(&r.Subjects[i], path.Child("subjects").Index(i))...)
	}
	if len(r.ResourceRules) == 0 && len(r.NonResourceRules) == 0 {
		errs = append(errs, field.Required(path, "resourceRules and nonResourceRules must not both be empty"))
	}
	for i := range r.ResourceRules {
		errs = append(errs, validateResourceRule(&r.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range r.NonResourceRules {
		errs = append(errs, validateNonResourceRule(&r.NonResourceRules[i], path.Child("nonResourceRules").Index(i))...)
	}
	return errs
}

// validateSubject wants the member that the kind names, and no other.
func validateSubject(s *flowcontrolv1.Subject, path *field.Path) field.ErrorList {
	errs := fieldcheck.OneOf(s.Kind, path.Child("kind"), flowcontrolv1.SubjectKindGroup,
		flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser)
	if len(errs) > 0 {
		return errs
	}
	members := []struct {
		kind  flowcontrolv1.SubjectKind
		path  *field.Path
		there bool
		check func(*field.Path) field.ErrorList
	}{
		{flowcontrolv1.SubjectKindUser, path.Child("user"), s.User != nil, func(p *field.Path) field.ErrorList {
			return fieldcheck.Required(s.User.Name, p.Child("name"), fieldcheck.NotEmpty)
		}},
		{flowcontrolv1.SubjectKindGroup, path.Child("group"), s.Group != nil, func(p *field.Path) field.ErrorList {
			return fieldcheck.Required(s.Group.Name, p.Child("name"), fieldcheck.NotEmpty)
		}},
		{flowcontrolv1.SubjectKindServiceAccount, path.Child("serviceAccount"), s.ServiceAccount != nil,
			func(p *field.Path) field.ErrorList { return validateAccount(s.ServiceAccount, p) }},
	}
	for _, member := range members {
		switch {
		case member.kind == s.Kind && !member.there:
			errs = append(errs, field.Required(member.path, fmt.Sprintf("the kind is '%s'", s.Kind)))
		case member.kind == s.Kind:
			errs = append(errs, member.check(member.path)...)
		case member.there:
			errs = append(errs, field.Forbidden(member.path, fmt.Sprintf("only for kind '%s'", member.kind)))
		}
	}
	return errs
}

func validateAccount(a *flowcontrolv1.ServiceAccountSubject, path *field.Path) field.ErrorList {
	errs := fieldcheck.Required(a.Name, path.Child("name"), func(name string) []string {
		if name == flowcontrolv1.NameAll {
			return nil
		}
		return validation.ValidateServiceAccountName(name, false)
	})
	return append(errs, fieldcheck.Required(a.Namespace, path.Child("namespace"), isNamespace)...)
}

func isNamespace(name string) []string { return validation.ValidateNamespaceName(name, false) }

func validateResourceRule(r *flowcontrolv1.ResourcePolicyRule, path *field.Path) field.ErrorList {
	errs := validateVerbs(r.Verbs, path.Child("verbs"))
	errs = append(errs, validateList(r.APIGroups, path.Child("apiGroups"), nil)...)
	errs = append(errs, validateList(r.Resources, path.Child("resources"), nil)...)
	if len(r.Namespaces) == 0 && r.ClusterScope {
		return errs
	}
	return append(errs, validateList(r.Namespaces, path.Child("namespaces"),
		func(name string, path *field.Path) field.ErrorList {
			return fieldcheck.Messages(name, path, isNamespace(name))
		})...)
}

func validateNonResourceRule(r *flowcontrolv1.NonResourcePolicyRule, path *field.Path) field.ErrorList {
	return append(validateVerbs(r.Verbs, path.Child("verbs")),
		validateList(r.NonResourceURLs, path.Child("nonResourceURLs"), validateURL)...)
}

func validateVerbs(of []string, path *field.Path) field.ErrorList {
	return validateList(of, path, func(verb string, path *field.Path) field.ErrorList {
		return fieldcheck.OneOf(verb, path, verbs...)
	})
}

// validateList wants something in the list; what matches all stands alone in it, everything else passes the check. No
// check is nil.
func validateList(of []string, path *field.Path, check func(string, *field.Path) field.ErrorList) field.ErrorList {
	switch {
	case len(of) == 0:
		return field.ErrorList{field.Required(path, "")}
	case slices.Contains(of, all) && len(of) > 1:
		return field.ErrorList{field.Invalid(path, of, "'*' must be the only entry where it is one")}
	case of[0] == all || check == nil:
		return nil
	}
	var errs field.ErrorList
	for i := range of {
		errs = append(errs, check(of[i], path.Index(i))...)
	}
	return errs
}

// validateURL wants a path, of which the last segment may stand for whatever follows.
func validateURL(url string, path *field.Path) field.ErrorList {
	var wrong string
	switch whole := strings.TrimSuffix(url, "/*"); {
	case url == "":
		wrong = "must not be empty"
	case !strings.HasPrefix(url, "/"):
		wrong = "must start with a slash"
	case strings.Contains(url, " "):
		wrong = "must not contain a space"
	case strings.Contains(url, "//"):
		wrong = "must not contain a double slash"
	case strings.Contains(whole, "*"):
		wrong = "'*' may only be the last segment"
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(path, url, wrong)}
}

// ValidateStatus returns what is wrong with the status: each condition has a type of its own.
func ValidateStatus(s *flowcontrolv1.FlowSchema) field.ErrorList {
	return fieldcheck.DistinctTypes(s.Status.Conditions, field.NewPath("status", "conditions"),
		func(c *flowcontrolv1.FlowSchemaCondition) flowcontrolv1.FlowSchemaConditionType { return c.Type })
}
