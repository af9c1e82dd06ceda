package accessreview

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// attributesOf is the request that a review asks about.
func attributesOf(who user.Info, resource *authorizationv1.ResourceAttributes,
	path *authorizationv1.NonResourceAttributes) authorizer.Attributes {
	if path != nil {
		return authorizer.AttributesRecord{User: who, Verb: path.Verb, Path: path.Path}
	}
	version := resource.Version
	if version == "" {
		version = "*"
	}
	attributes := authorizer.AttributesRecord{
		User:            who,
		Verb:            resource.Verb,
		Namespace:       resource.Namespace,
		APIGroup:        resource.Group,
		APIVersion:      version,
		Resource:        resource.Resource,
		Subresource:     resource.Subresource,
		Name:            resource.Name,
		ResourceRequest: true,
	}
	attributes.FieldSelectorRequirements, attributes.FieldSelectorParsingErr = fieldsOf(resource.FieldSelector)
	return attributes
}

func validateSubject(spec authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateAttributes(spec.ResourceAttributes, spec.NonResourceAttributes, path)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(path.Child("user"), spec.User,
			"at least one of user or group must be specified"))
	}
	return errs
}

func validateAttributes(resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes,
	at *field.Path) field.ErrorList {
	if resource != nil && path != nil {
		return field.ErrorList{field.Invalid(at.Child("nonResourceAttributes"), path,
			"cannot be specified in combination with resourceAttributes")}
	}
	if resource == nil && path == nil {
		return field.ErrorList{field.Invalid(at.Child("resourceAttributes"), resource,
			"exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	}
	if resource == nil {
		return nil
	}
	return validateFields(resource.FieldSelector, at.Child("resourceAttributes", "fieldSelector"))
}
