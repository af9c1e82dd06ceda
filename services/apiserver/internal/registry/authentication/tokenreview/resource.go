// Package tokenreview is the resource TokenReview: it says whose a token is.
// SelfSubjectReview beside it says who the caller is.
package tokenreview

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/services/apiserver/internal/authn"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Entry is the reviews. Tokens are asked for one of audiences unless the review names others.
func Entry(authenticators authn.Authenticators, audiences []string) rest.Entry {
	r := reviewer{authenticators.Token, audiences}
	return rest.Stateless{
		"tokenreviews": rest.NewReview("tokenreview",
			func() *authenticationv1.TokenReview { return &authenticationv1.TokenReview{} }, r.review),
		"selfsubjectreviews": rest.NewReview("selfsubjectreview",
			func() *authenticationv1.SelfSubjectReview { return &authenticationv1.SelfSubjectReview{} }, reviewSelf),
	}
}

type reviewer struct {
	tokens    authenticator.Token
	audiences []string
}

func (r reviewer) review(ctx context.Context, review *authenticationv1.TokenReview) error {
	if review.Spec.Token == "" {
		return apierrors.NewBadRequest("spec.token: token is required for TokenReview in authentication")
	}
	asked := review.Spec.Audiences
	if len(asked) == 0 {
		asked = r.audiences
	}
	review.Status = authenticationv1.TokenReviewStatus{}
	if r.tokens == nil {
		return nil
	}
	response, ok, err := r.tokens.AuthenticateToken(authenticator.WithAudiences(ctx, asked), review.Spec.Token)
	review.Status.Authenticated = ok
	if err != nil {
		review.Status.Error = err.Error()
	}
	if response == nil || response.User == nil {
		return nil
	}
	review.Status.User = rest.UserInfo(response.User)
	review.Status.Audiences = slices.Clone(response.Audiences)
	return nil
}

func reviewSelf(ctx context.Context, review *authenticationv1.SelfSubjectReview) error {
	who, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return apierrors.NewBadRequest("no user present on request")
	}
	review.Status.UserInfo = rest.UserInfo(who)
	if review.CreationTimestamp.IsZero() {
		review.CreationTimestamp = metav1.Now()
	}
	return nil
}
