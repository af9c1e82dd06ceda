package server

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/nodeagent/internal/review"
)

// tokens are the users of the tokens that the API knows: of tools that may read something, and of a Pod that may
// not.
var tokens = map[string]authenticationv1.UserInfo{
	"prometheus": {Username: "prometheus", Groups: []string{"system:authenticated"}},
	"viewer":     {Username: "viewer", Groups: []string{"system:authenticated"}},
	"configurer": {Username: "configurer", Groups: []string{"system:authenticated"}},
	"proxier":    {Username: "proxier", Groups: []string{"system:authenticated"}},
	"pod":        {Username: "system:serviceaccount:ns:default", Groups: []string{"system:authenticated"}},
	// Names that have rights in certificates have none in a token.
	"apiserver": {Username: apiserverUser, Groups: []string{"system:authenticated"}},
	"master":    {Username: "mallory", Groups: []string{mastersGroup, "system:authenticated"}},
}

// rights are what users may do with the node n1.
var rights = map[string][]string{
	"prometheus": {"get metrics"}, "viewer": {"get pods", "get healthz", "get log", "get stats"},
	"proxier": {"get proxy"}, "configurer": {"get configz"}, "by-certificate": {"get metrics"},
}

// api is an API server that answers reviews.
type api struct {
	mu    sync.Mutex
	fails error
	asked []authorizationv1.SubjectAccessReviewSpec
}

func (a *api) reviewer() *review.Reviewer {
	return review.New(review.Config{Settings: review.Settings{Tokens: true}, TokenReviews: tokenReviews{a},
		AccessReviews: accessReviews{a}, Log: zap.NewNop(), Node: "n1"})
}

type tokenReviews struct{ *api }

// Create implements review.TokenReviews.
func (a tokenReviews) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (
	*authenticationv1.TokenReview, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	review = review.DeepCopy()
	review.Status.User = tokens[review.Spec.Token]
	review.Status.Authenticated = review.Status.User.Username != ""
	return review, a.fails
}

type accessReviews struct{ *api }

// Create implements review.AccessReviews.
func (a accessReviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (
	*authorizationv1.SubjectAccessReview, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	review = review.DeepCopy()
	a.asked = append(a.asked, review.Spec)
	of := review.Spec.ResourceAttributes
	review.Status.Allowed = of.Name == "n1" && of.Resource == "nodes" && of.Group == "" &&
		slices.Contains(review.Spec.Groups, "system:authenticated") &&
		slices.Contains(rights[review.Spec.User], of.Verb+" "+of.Subresource)
	return review, a.fails
}

func (a *api) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fails = err
}
