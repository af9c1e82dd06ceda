package servertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/followedfile"
	"keelson.dev/services/apiserver/internal/followedfile/followedfiletest"
	"keelson.dev/services/apiserver/internal/servertest"
)

// Files are looked at every moment, not once a minute.
func init() { followedfile.Interval = 50 * time.Millisecond }

const authorizersHead = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"

// ownAuthorizers are those that are there by themselves.
const ownAuthorizers = "- {type: Node, name: node}\n- {type: RBAC, name: rbac}\n"

// asAuthorizer is the webhook as a file has it: what it is asked about is in the namespace, where one is named.
func (r *reviewer) asAuthorizer(t *testing.T, name, policy, namespace string) string {
	t.Helper()
	text := fmt.Sprintf(`- type: Webhook
  name: %s
  webhook:
    timeout: 1s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: %s
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
`, name, policy, r.kubeconfig(t))
	if namespace != "" {
		text += fmt.Sprintf("    matchConditions:\n    - expression: has(request.resourceAttributes) && "+
			"request.resourceAttributes.namespace == %q\n", namespace)
	}
	return text
}

// rights answers by what a question says.
func rights(decide func(authorizationv1.SubjectAccessReviewSpec) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &review)
		status("authorization.k8s.io/v1", "SubjectAccessReview", decide(review.Spec))(w, r)
	}
}

// mayList is what a SelfSubjectAccessReview says of listing a resource in the namespace.
func mayList(t *testing.T, client kubernetes.Interface, ns, resource string) authorizationv1.SubjectAccessReviewStatus {
	t.Helper()
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "list", Resource: resource}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status
}

// TestAuthorizers: a webhook is asked about requests that its conditions match and that no authorizer before it has
// decided, and its answers are believed for a while.
func TestAuthorizers(t *testing.T) {
	first := startReviewer(t, rights(func(spec authorizationv1.SubjectAccessReviewSpec) string {
		if spec.ResourceAttributes.Resource == "secrets" {
			return `{"allowed":false,"denied":true,"reason":"no secrets here"}`
		}
		return `{"allowed":false}`
	}))
	last := startReviewer(t, rights(func(spec authorizationv1.SubjectAccessReviewSpec) string {
		if spec.ResourceAttributes != nil && spec.ResourceAttributes.Resource == "configmaps" {
			return `{"allowed":true,"reason":"everybody may"}`
		}
		return `{"allowed":false,"reason":"nobody has said so"}`
	}))
	s := servertest.Start(t, func(c *inproc.Config) {
		c.Authorization.ConfigFile = configuration(t, authorizersHead+first.asAuthorizer(t, "guard", "Deny", "guarded")+
			ownAuthorizers+last.asAuthorizer(t, "last", "NoOpinion", ""))
	})
	ns, guarded := s.Namespace(t, "open"), s.Namespace(t, "guarded")
	ann := s.As(t, "ann")
	bind(t, s, guarded, "admin", "ann")
	if _, err := ann.CoreV1().Pods(guarded).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("with a role: %v", err)
	}
	for _, row := range []struct {
		ns, resource    string
		allowed, denied bool
		reason          string
	}{
		{guarded, "pods", true, false, "RBAC: allowed by ClusterRole \"admin\""},
		{guarded, "secrets", false, true, "no secrets here"},
		{ns, "configmaps", true, false, "everybody may"},
		{ns, "pods", false, false, "last: nobody has said so"},
	} {
		if got := mayList(t, ann, row.ns, row.resource); got.Allowed != row.allowed || got.Denied != row.denied ||
			got.Reason != row.reason || got.EvaluationError != "" {
			t.Errorf("%s in %s: %+v", row.resource, row.ns, got)
		}
	}
	if _, err := ann.CoreV1().Secrets(guarded).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) ||
		!strings.HasSuffix(err.Error(), ": no secrets here") {
		t.Errorf("listing Secrets: %v", err)
	}
	if _, err := s.Client.CoreV1().Secrets(guarded).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a member of system:masters: %v", err)
	}
	for range 3 {
		if _, err := s.As(t, "bob").CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("listing ConfigMaps: %v", err)
		}
	}
	if got := last.askedAbout("bob"); len(got) != 1 || got[0].Spec.ResourceAttributes.Verb != "list" ||
		got[0].Spec.UID != "uid-bob" {
		t.Errorf("about bob the webhook was asked %+v", got)
	}
	if got := first.askedAbout("bob"); len(got) != 0 {
		t.Errorf("about bob, who is elsewhere, the first was asked %+v", got)
	}
	if n := len(first.askedAbout(servertest.Admin)) + len(last.askedAbout(servertest.Admin)); n != 0 {
		t.Errorf("about a member of system:masters webhooks were asked %d times", n)
	}
	rules, err := ann.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: guarded}}, metav1.CreateOptions{})
	if err != nil || !rules.Status.Incomplete ||
		!strings.Contains(fmt.Sprint(rules.Status.ResourceRules), "pods/log") ||
		!strings.Contains(rules.Status.EvaluationError, "webhook authorizer does not support user rule resolution") {
		t.Errorf("my rules: %+v, %v", rules, err)
	}
}

// TestAuthorizationByFlags: the same by flags, in the version that they stand for.
func TestAuthorizationByFlags(t *testing.T) {
	webhook := startReviewer(t, status("authorization.k8s.io/v1beta1", "SubjectAccessReview", `{"allowed":true}`))
	s := servertest.Start(t, func(c *inproc.Config) {
		c.Authorization.Modes = []string{"RBAC", "Webhook"}
		c.Authorization.Webhook.ConfigFile = webhook.kubeconfig(t)
	})
	if _, err := s.As(t, "bob").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if got := webhook.askedAbout("bob"); len(got) != 1 || got[0].APIVersion != "authorization.k8s.io/v1beta1" {
		t.Errorf("the webhook was asked %+v", got)
	}
}

// A webhook that does not answer as one should gives one clear error to a user whose request no other authorizer
// allows, or refuses the user if its policy is Deny. A user who has a right by a role has it.
func TestHostileAuthorizers(t *testing.T) {
	silent := status("authorization.k8s.io/v1", "SubjectAccessReview", `{"allowed":false}`)
	open, closed := startReviewer(t, silent), startReviewer(t, silent)
	s := servertest.Start(t, func(c *inproc.Config) {
		c.Authorization.ConfigFile = configuration(t, authorizersHead+
			closed.asAuthorizer(t, "closed", "Deny", "closed")+ownAuthorizers+
			open.asAuthorizer(t, "open", "NoOpinion", "open"))
	})
	for _, ns := range []string{"open", "closed"} {
		s.Namespace(t, ns)
		bind(t, s, ns, "view", "ann")
	}
	ann, bob := s.As(t, "ann"), s.As(t, "bob")
	review := func(answer string) http.HandlerFunc {
		return status("authorization.k8s.io/v1", "SubjectAccessReview", answer)
	}
	for _, row := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			"exceeded"},
		{"garbage", text("\x00\x01garbage"), "control characters are not allowed"},
		{"nothing", text(""), "0-length response"},
		{"ten MiB", func(w http.ResponseWriter, _ *http.Request) {
			for range 10 {
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
			}
		}, "its answer has more than 1048576 bytes"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "it answers 307 Temporary Redirect, and no redirect is followed"},
		{"an end", dies, "unexpected EOF"},
		{"both", review(`{"allowed":true,"denied":true}`), "both allow and deny"},
	} {
		t.Run(row.name, func(t *testing.T) {
			open.says(row.answer)
			closed.says(row.answer)
			// Each row asks about another resource, as answers are believed for a while.
			resource := strings.ReplaceAll(row.name, " ", "-")
			for _, ns := range []string{"open", "closed"} {
				got := mayList(t, bob, ns, resource)
				if got.Allowed || got.Denied != (ns == "closed" || row.name == "both") ||
					!strings.Contains(got.EvaluationError, row.want) || len(got.EvaluationError) > 1000 {
					t.Errorf("bob in %s: %+v, want %q", ns, got, row.want)
				}
			}
			if got := mayList(t, ann, "open", "pods"); !got.Allowed {
				t.Errorf("ann, who has a role, in open: %+v", got)
			}
			if got := mayList(t, ann, "closed", "pods"); got.Allowed {
				t.Errorf("ann in closed, where the webhook is asked before her role: %+v", got)
			}
			if _, err := s.Client.CoreV1().Pods("closed").List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Errorf("a member of system:masters: %v", err)
			}
		})
	}
	open.says(text("\x00\x01garbage"))
	_, err := bob.CoreV1().Pods("open").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "control characters are not allowed") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("a request: %v", err)
	}
}

// TestAuthorizersChange: a file that changes is in force without a restart, one that is wrong leaves what was.
func TestAuthorizersChange(t *testing.T) {
	webhook := startReviewer(t, status("authorization.k8s.io/v1", "SubjectAccessReview", `{"allowed":true}`))
	path := configuration(t, authorizersHead+ownAuthorizers)
	s := servertest.Start(t, func(c *inproc.Config) { c.Authorization.ConfigFile = path })
	bob := s.As(t, "bob")
	if got := mayList(t, bob, "default", "pods"); got.Allowed {
		t.Errorf("before: %+v", got)
	}
	followedfiletest.Replace(t, path, authorizersHead+ownAuthorizers+
		webhook.asAuthorizer(t, "last", "NoOpinion", ""))
	servertest.Eventually(t, "the webhook is asked", func(context.Context) string {
		if got := mayList(t, bob, "default", "pods"); !got.Allowed {
			return "refused: " + got.Reason
		}
		return ""
	})
	followedfiletest.Replace(t, path, authorizersHead+"- {type: RBAC, name: rbac}\n")
	servertest.Eventually(t, "a file without Node is told of", func(ctx context.Context) string {
		text, err := s.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			return err.Error()
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "apiserver_authorization_config_controller_automatic_reloads_total{") &&
				strings.Contains(line, `status="failure"`) {
				return ""
			}
		}
		return "no failure is counted"
	})
	if got := mayList(t, bob, "default", "services"); !got.Allowed {
		t.Errorf("after a file that is wrong: %+v", got)
	}
}

// A webhook that is the apiserver itself asks itself about the requester. That ends, and no other client waits for it.
func TestAnAuthorizerThatAsksItself(t *testing.T) {
	config := servertest.NewConfig(t, t.TempDir())
	address := config.Listener.Addr().String()
	kubeconfig := configuration(t, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: self, cluster: {server: "https://%s/apis/authorization.k8s.io/v1/subjectaccessreviews", `+
		`insecure-skip-tls-verify: true}}]
users: [{name: bob, user: {token: token-bob}}]
contexts: [{name: self, context: {cluster: self, user: bob}}]
current-context: self
`, address))
	s := servertest.Start(t, func(c *inproc.Config) {
		c.Listener, c.TokenAuthFile = config.Listener, config.TokenAuthFile
		c.Authorization.ConfigFile = configuration(t, authorizersHead+ownAuthorizers+fmt.Sprintf(`- type: Webhook
  name: self
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
`, kubeconfig))
	})
	done := make(chan authorizationv1.SubjectAccessReviewStatus, 1)
	go func() { done <- mayList(t, s.As(t, "ann"), "default", "pods") }()
	for range 10 {
		if _, err := s.Client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("somebody else: %v", err)
		}
	}
	select {
	case got := <-done:
		if got.Allowed || got.EvaluationError == "" {
			t.Errorf("%+v", got)
		}
	case <-time.After(90 * time.Second):
		t.Error("it does not end")
	}
}
