package servertest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/internal/servertest"
)

type ruleType = rbacv1.PolicyRule

func testAccess(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "access")
	ann := s.As(t, "ann")
	_, err := ann.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
	want := `configmaps is forbidden: User "ann" cannot list resource "configmaps" in API group "" in the namespace "access"`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("without a role: %v\nwant %s", err, want)
	}
	bind(t, s, ns, "view", "ann")
	if _, err := ann.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("with a role: %v", err)
	}
	if _, err := ann.CoreV1().ConfigMaps(ns).Create(ctx, configMap("a", nil),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("writing with a role that reads: %v", err)
	}
	if _, err := ann.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("reading in another namespace: %v", err)
	}
	testReviews(t, s, ann, ns)
	if _, err := s.As(t, "nobody").CoreV1().Namespaces().List(ctx,
		metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("an unknown token: %v, want unauthorized", err)
	}
	anonymous := kubernetes.NewForConfigOrDie(&restclient.Config{Host: "https://" + s.Address(),
		TLSClientConfig: restclient.TLSClientConfig{Insecure: true}})
	if _, err := anonymous.CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "system:anonymous") {
		t.Errorf("no token: %v, want system:anonymous forbidden", err)
	}
}

func testReviews(t *testing.T, s *servertest.Server, ann kubernetes.Interface, ns string) {
	t.Helper()
	for verb, want := range map[string]bool{"list": true, "delete": false} {
		attributes := &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Resource: "pods"}
		self, err := ann.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
			}, metav1.CreateOptions{})
		if err != nil || self.Status.Allowed != want {
			t.Errorf("may I %s: %+v, %v, want %v", verb, self, err, want)
		}
		other, err := s.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: "ann", ResourceAttributes: attributes},
			}, metav1.CreateOptions{})
		if err != nil || other.Status.Allowed != want {
			t.Errorf("may ann %s: %+v, %v, want %v", verb, other, err, want)
		}
		if err == nil && len(other.ManagedFields) > 0 {
			t.Errorf("a review that is not stored has managers of fields: %+v", other.ManagedFields)
		}
	}
	rules, err := ann.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: ns},
		}, metav1.CreateOptions{})
	if err != nil || !strings.Contains(fmt.Sprint(rules.Status.ResourceRules), "pods/log") {
		t.Errorf("my rules: %+v, %v", rules, err)
	}
}

func testTokens(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "tokens")
	accounts := s.Client.CoreV1().ServiceAccounts(ns)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "bot"}},
		metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("creating the account: %v", err)
	}
	secret, err := s.Client.CoreV1().Secrets(ns).Create(ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "held"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating the secret: %v", err)
	}
	issue := func(spec authenticationv1.TokenRequestSpec) string {
		t.Helper()
		request, err := accounts.CreateToken(ctx, "bot", &authenticationv1.TokenRequest{Spec: spec},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("requesting a token: %v", err)
		}
		return request.Status.Token
	}
	whoami := func(ctx context.Context, token string) (string, error) {
		client := kubernetes.NewForConfigOrDie(&restclient.Config{Host: "https://" + s.Address(), BearerToken: token,
			TLSClientConfig: restclient.TLSClientConfig{Insecure: true}})
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
			metav1.CreateOptions{})
		return review.Status.UserInfo.Username, err
	}
	for _, path := range []string{"/.well-known/openid-configuration", "/openid/v1/jwks"} {
		if err := get(ctx, s.Client.CoreV1().RESTClient(), path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if name, err := whoami(ctx, issue(authenticationv1.TokenRequestSpec{})); err != nil ||
		name != "system:serviceaccount:tokens:bot" {
		t.Errorf("the token is %q's, %v", name, err)
	}
	if _,
		err := whoami(ctx,
		issue(authenticationv1.TokenRequestSpec{Audiences: []string{"elsewhere"}})); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token for another audience: %v, want unauthorized", err)
	}
	bound := issue(authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
		Kind: "Secret", APIVersion: "v1", Name: "held", UID: secret.UID}})
	review, err := s.Client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: bound}}, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated || review.Status.User.Username != "system:serviceaccount:tokens:bot" {
		t.Errorf("reviewing the token: %+v, %v", review.Status, err)
	}
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:tokens", "system:authenticated"}
	if !slices.Equal(review.Status.User.Groups, groups) {
		t.Errorf("the token's groups are %q, want %q", review.Status.User.Groups, groups)
	}
	if err := s.Client.CoreV1().Secrets(ns).Delete(ctx, "held", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting the secret: %v", err)
	}
	servertest.Eventually(t, "the token ends with what it is bound to", func(ctx context.Context) string {
		if _, err := whoami(ctx, bound); !apierrors.IsUnauthorized(err) {
			return fmt.Sprintf("still believed: %v", err)
		}
		return ""
	})
}
