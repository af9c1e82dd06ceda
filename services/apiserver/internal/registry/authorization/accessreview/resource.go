// Package accessreview is the group authorization.k8s.io: it answers what a user may do. Nothing of it is stored.
package accessreview

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Authority decides and lists a user's rules.
type Authority interface {
	authorizer.Authorizer
	authorizer.RuleResolver
}

// Entry is the four reviews.
func Entry(authority Authority) rest.Entry {
	r := reviewer{authority}
	return rest.Stateless{
		"subjectaccessreviews": rest.NewReview("subjectaccessreview",
			func() *authorizationv1.SubjectAccessReview { return &authorizationv1.SubjectAccessReview{} }, r.subject),
		"localsubjectaccessreviews": rest.NewNamespacedReview("localsubjectaccessreview",
			func() *authorizationv1.LocalSubjectAccessReview { return &authorizationv1.LocalSubjectAccessReview{} },
			r.local),
		"selfsubjectaccessreviews": rest.NewReview("selfsubjectaccessreview",
			func() *authorizationv1.SelfSubjectAccessReview { return &authorizationv1.SelfSubjectAccessReview{} },
			r.self),
		"selfsubjectrulesreviews": rest.NewReview("selfsubjectrulesreview",
			func() *authorizationv1.SelfSubjectRulesReview { return &authorizationv1.SelfSubjectRulesReview{} },
			r.rules),
	}
}

type reviewer struct{ authority Authority }

func (r reviewer) subject(ctx context.Context, review *authorizationv1.SubjectAccessReview) error {
	if errs := validateSubject(review.Spec); len(errs) > 0 {
		return apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview").GroupKind(), "",
			errs)
	}
	review.Status = r.decide(ctx, attributesOf(subjectOf(review.Spec), review.Spec.ResourceAttributes,
		review.Spec.NonResourceAttributes))
	return nil
}

func (r reviewer) local(ctx context.Context, review *authorizationv1.LocalSubjectAccessReview) error {
	errs := validateSubject(review.Spec)
	spec := field.NewPath("spec")
	switch attributes := review.Spec.ResourceAttributes; {
	case attributes == nil:
		errs = append(errs, field.Required(spec.Child("resourceAttributes"),
			"a LocalSubjectAccessReview is about a resource"))
	case attributes.Namespace != review.Namespace:
		errs = append(errs, field.Invalid(spec.Child("resourceAttributes", "namespace"), attributes.Namespace,
			"must match metadata.namespace"))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind("LocalSubjectAccessReview").GroupKind(),
			"", errs)
	}
	review.Status = r.decide(ctx, attributesOf(subjectOf(review.Spec), review.Spec.ResourceAttributes, nil))
	return nil
}

func (r reviewer) self(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview) error {
	if errs := validateAttributes(review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes,
		field.NewPath("spec")); len(errs) > 0 {
		return apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview").GroupKind(),
			"", errs)
	}
	who, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return apierrors.NewBadRequest("no user present on request")
	}
	review.Status = r.decide(ctx, attributesOf(who, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes))
	return nil
}

func (r reviewer) rules(ctx context.Context, review *authorizationv1.SelfSubjectRulesReview) error {
	if review.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	who, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return apierrors.NewBadRequest("no user present on request")
	}
	resources, paths, incomplete, err := r.authority.RulesFor(ctx, who, review.Spec.Namespace)
	// The lists are required fields: empty, never null.
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
		Incomplete: incomplete,
	}
	for _, rule := range resources {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.GetVerbs(), APIGroups: rule.GetAPIGroups(), Resources: rule.GetResources(),
			ResourceNames: rule.GetResourceNames(),
		})
	}
	for _, rule := range paths {
		status.NonResourceRules = append(status.NonResourceRules,
			authorizationv1.NonResourceRule{Verbs: rule.GetVerbs(), NonResourceURLs: rule.GetNonResourceURLs()})
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	review.Status = status
	return nil
}

func (r reviewer) decide(ctx context.Context,
	attributes authorizer.Attributes) authorizationv1.SubjectAccessReviewStatus {
	decision, reason, err := r.authority.Authorize(ctx, attributes)
	status := authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authorizer.DecisionAllow,
		Denied:  decision == authorizer.DecisionDeny,
		Reason:  reason,
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status
}

func subjectOf(spec authorizationv1.SubjectAccessReviewSpec) user.Info {
	info := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if info.Extra == nil {
			info.Extra = map[string][]string{}
		}
		info.Extra[key] = values
	}
	return info
}
