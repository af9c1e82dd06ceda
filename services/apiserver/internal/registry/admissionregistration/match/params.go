package match

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/table"
)

// ParamKind returns what is wrong with the kind of a policy's parameters; nil: it has none.
func ParamKind(k *admissionregistrationv1.ParamKind, path *field.Path) field.ErrorList {
	if k == nil {
		return nil
	}
	errs := apiVersion(k.APIVersion, path.Child("apiVersion"))
	return append(errs, fieldcheck.Required(k.Kind, path.Child("kind"), func(kind string) []string {
		return validation.IsDNS1035Label(strings.ToLower(kind))
	})...)
}

func apiVersion(text string, path *field.Path) field.ErrorList {
	if text == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	version, err := schema.ParseGroupVersion(text)
	if err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	errs := fieldcheck.Optional(version.Group, path, validation.IsDNS1123Subdomain)
	return append(errs, fieldcheck.Messages(version.Version, path, validation.IsDNS1035Label(version.Version))...)
}

// ParamRef returns what is wrong with how a binding names its parameters; nil: it has none.
func ParamRef(r *admissionregistrationv1.ParamRef, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := fieldcheck.Optional(r.Name, path.Child("name"), func(name string) []string {
		return content.IsPathSegmentName(name)
	})
	errs = append(errs, fieldcheck.LabelSelector(r.Selector, path.Child("selector"))...)
	switch {
	case r.Name != "" && r.Selector != nil:
		errs = append(errs, field.Forbidden(path.Child("name"), "name and selector are mutually exclusive"),
			field.Forbidden(path.Child("selector"), "name and selector are mutually exclusive"))
	case r.Name == "" && r.Selector == nil:
		errs = append(errs, field.Required(path, "one of name or selector must be specified"))
	}
	return append(errs, fieldcheck.RequiredOneOf(ptr.Deref(r.ParameterNotFoundAction, ""),
		path.Child("parameterNotFoundAction"), admissionregistrationv1.AllowAction,
		admissionregistrationv1.DenyAction)...)
}

// PolicyName returns what is wrong with the name of the policy that a binding is for.
func PolicyName(name string, path *field.Path) field.ErrorList {
	return fieldcheck.Required(name, path, fieldcheck.DNSSubdomain)
}

// ParamKindCell shows the kind of a policy's parameters.
func ParamKindCell(k *admissionregistrationv1.ParamKind) any {
	if k == nil {
		return table.Unset
	}
	return k.APIVersion + "/" + k.Kind
}

// ParamRefCell shows the parameters of a binding. Without a namespace they may be in any.
func ParamRefCell(r *admissionregistrationv1.ParamRef) any {
	switch {
	case r == nil, r.Name == "" && r.Selector == nil:
		return table.Unset
	case r.Name == "":
		return table.Selector(r.Selector)
	case r.Namespace == "":
		return "*/" + r.Name
	}
	return r.Namespace + "/" + r.Name
}
