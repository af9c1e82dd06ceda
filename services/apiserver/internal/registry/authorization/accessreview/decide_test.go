package accessreview

import (
	"reflect"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// A review asks the authorizers what the request itself would ask them.
func TestAttributesOf(t *testing.T) {
	ann := &user.DefaultInfo{Name: "ann", Groups: []string{"dev"}}
	whole := authorizationv1.ResourceAttributes{Verb: "list", Group: "apps", Version: "v1", Resource: "deployments",
		Subresource: "scale", Namespace: "ns", Name: "web",
		FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: "metadata.name=web"}}
	requirements := fields.Requirements{{Field: "metadata.name", Operator: selection.Equals, Value: "web"}}
	asked := authorizer.AttributesRecord{User: ann, Verb: "list", APIGroup: "apps", APIVersion: "v1",
		Resource: "deployments", Subresource: "scale", Namespace: "ns", Name: "web", ResourceRequest: true,
		FieldSelectorRequirements: requirements}
	anyVersion, anyAsked := whole, asked
	anyVersion.Version, anyAsked.APIVersion = "", "*"
	for name, row := range map[string]struct {
		resource *authorizationv1.ResourceAttributes
		path     *authorizationv1.NonResourceAttributes
		want     authorizer.AttributesRecord
	}{
		"a resource":                {&whole, nil, asked},
		"a resource of any version": {&anyVersion, nil, anyAsked},
		"a resource and nothing of it": {&authorizationv1.ResourceAttributes{}, nil,
			authorizer.AttributesRecord{User: ann, APIVersion: "*", ResourceRequest: true}},
		"a path": {nil, &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
			authorizer.AttributesRecord{User: ann, Verb: "get", Path: "/metrics"}},
	} {
		if got := attributesOf(ann, row.resource, row.path); !reflect.DeepEqual(got, authorizer.Attributes(row.want)) {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
	broken := authorizationv1.ResourceAttributes{FieldSelector: &authorizationv1.FieldSelectorAttributes{
		RawSelector: "metadata.name"}}
	if _, err := attributesOf(ann, &broken, nil).GetFieldSelector(); err == nil {
		t.Error("the authorizers do not hear that the selector makes no sense")
	}
}

func TestValidateSubject(t *testing.T) {
	pods := &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}
	path := &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/healthz"}
	selecting := func(s authorizationv1.FieldSelectorAttributes) *authorizationv1.ResourceAttributes {
		return &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", FieldSelector: &s}
	}
	const nobody = `spec.user: Invalid value: "": at least one of user or group must be specified`
	for name, row := range map[string]struct {
		spec authorizationv1.SubjectAccessReviewSpec
		want []string
	}{
		"a user": {authorizationv1.SubjectAccessReviewSpec{User: "ann", ResourceAttributes: pods}, nil},
		"a group": {authorizationv1.SubjectAccessReviewSpec{Groups: []string{"dev"},
			NonResourceAttributes: path}, nil},
		"a user and a group": {authorizationv1.SubjectAccessReviewSpec{User: "ann", Groups: []string{"dev"},
			ResourceAttributes: pods}, nil},
		"nobody": {authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: pods}, []string{nobody}},
		"a UID is nobody": {authorizationv1.SubjectAccessReviewSpec{UID: "u1", NonResourceAttributes: path},
			[]string{nobody}},
		"nothing asked": {authorizationv1.SubjectAccessReviewSpec{User: "ann"}, []string{"spec.resourceAttributes: " +
			"Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"}},
		"both asked": {authorizationv1.SubjectAccessReviewSpec{User: "ann", ResourceAttributes: pods,
			NonResourceAttributes: path}, []string{`spec.nonResourceAttributes: Invalid value: {"path":"/healthz",` +
			`"verb":"get"}: cannot be specified in combination with resourceAttributes`}},
		"nobody asks nothing": {authorizationv1.SubjectAccessReviewSpec{}, []string{"spec.resourceAttributes: " +
			"Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
			nobody}},
		"a selector": {authorizationv1.SubjectAccessReviewSpec{User: "ann", ResourceAttributes: selecting(
			authorizationv1.FieldSelectorAttributes{RawSelector: "a=b"})}, nil},
		"a selector that says nothing": {authorizationv1.SubjectAccessReviewSpec{User: "ann",
			ResourceAttributes: selecting(authorizationv1.FieldSelectorAttributes{})},
			[]string{"spec.resourceAttributes.fieldSelector.requirements: Required value: when " +
				"spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := texts(validateSubject(row.spec)); !reflect.DeepEqual(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func texts(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
