package servertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/authn/issuertest"
	"keelson.dev/services/apiserver/internal/servertest"
)

// issuing is a file that believes the issuer, puts oidc: before its names, and lets health be asked for anonymously.
func issuing(t *testing.T, i *issuertest.Issuer) string {
	t.Helper()
	authority := strings.ReplaceAll(strings.TrimSpace(i.Authority()), "\n", "\n      ")
	return configuration(t, fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /livez}]}
jwt:
- issuer:
    url: %s
    audiences: [mesh]
    certificateAuthority: |
      %s
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {claim: groups, prefix: "oidc:"}
`, i.URL, authority))
}

// knows answers about one token that it is bob's, and rejects all others.
func knows(token string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &review)
		answer := `{"authenticated":false}`
		if review.Spec.Token == token {
			answer = `{"authenticated":true,"user":{"username":"bob","uid":"7",` +
				`"groups":["ops","system:authenticated"],"extra":{"example.com/a":["b"]}}}`
		}
		status("authentication.k8s.io/v1", "TokenReview", answer)(w, r)
	}
}

// asked is a webhook in front of the server.
func (r *reviewer) asked(t *testing.T) func(*inproc.Config) {
	return func(c *inproc.Config) {
		c.TokenWebhook.ConfigFile, c.TokenWebhook.Version = r.kubeconfig(t), "v1"
	}
}

// naming is the connection of a proxy that names users in headers.
func naming(t *testing.T, of *servertest.Authority, s *servertest.Server, name string,
	headers map[string]string) kubernetes.Interface {
	t.Helper()
	config := of.Config(t, s, name)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			for key, value := range headers {
				r.Header.Set(key, value)
			}
			return next.RoundTrip(r)
		})
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWhoIsBelieved: a client with credentials of any kind is the user that it says, and no other client is any user.
func TestWhoIsBelieved(t *testing.T) {
	i, webhook := issuertest.Start(t), startReviewer(t, knows("bobs"))
	people, proxies := servertest.NewAuthority(t), servertest.NewAuthority(t)
	s := servertest.Start(t, people.Trusted(t), webhook.asked(t), func(c *inproc.Config) {
		c.Authentication.ConfigFile = issuing(t, i)
		c.Proxies.ClientCAFile, c.Proxies.AllowedNames = proxies.File(t), []string{"proxy"}
		c.Proxies.UsernameHeaders, c.Proxies.GroupHeaders = []string{"X-Remote-User"}, []string{"X-Remote-Group"}
	})
	token := func(claims map[string]any) string { return i.Token(t, claims) }
	carol := map[string]string{"X-Remote-User": "carol", "X-Remote-Group": "staff"}
	servertest.Eventually(t, "the issuer is known", func(context.Context) string {
		if _, err := whoami(t, withToken(t, s, token(nil))); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, row := range []struct {
		name   string
		client kubernetes.Interface
		// want is the user's name; empty: the request is refused.
		want   string
		groups []string
	}{
		{"a token of the issuer", withToken(t, s, token(map[string]any{"groups": []string{"dev", "system:masters"}})),
			"oidc:ann", []string{"oidc:dev", "oidc:system:masters", "system:authenticated"}},
		{"one for somebody else", withToken(t, s, token(map[string]any{"aud": "x"})), "", nil},
		{"one that nobody signed", withToken(t, s, i.Unsigned(t, nil)), "", nil},
		{"one that the webhook knows", withToken(t, s, "bobs"), "bob", []string{"ops", "system:authenticated"}},
		{"one that it does not", withToken(t, s, "nobodys"), "", nil},
		{"one of the file", withToken(t, s, "token-ann"), "ann", []string{"", "system:authenticated"}},
		{"a huge one", withToken(t, s, strings.Repeat("x", 64<<10+1)), "", nil},
		{"a certificate", people.Client(t, s, "dora", "dev"), "dora", []string{"dev", "system:authenticated"}},
		{"a proxy", naming(t, proxies, s, "proxy", carol), "carol", []string{"staff", "system:authenticated"}},
		{"a proxy that names nobody", naming(t, proxies, s, "proxy", nil), "", nil},
		{"a proxy that may not", naming(t, proxies, s, "other", carol), "", nil},
		{"somebody who says that he is a proxy", naming(t, people, s, "proxy", carol), "proxy",
			[]string{"system:authenticated"}},
		{"headers alone", naming(t, servertest.NewAuthority(t), s, "proxy", carol), "", nil},
		{"nothing", withToken(t, s, ""), "", nil},
	} {
		who, err := whoami(t, row.client)
		switch {
		case row.want == "" && !apierrors.IsUnauthorized(err):
			t.Errorf("%s: %+v, %v, want it refused", row.name, who, err)
		case row.want != "" && (err != nil || who.Username != row.want || !reflect.DeepEqual(who.Groups, row.groups)):
			t.Errorf("%s: %+v, %v, want %s of %v", row.name, who, err, row.want, row.groups)
		}
	}
	if n := webhook.askedAboutToken(strings.Repeat("x", 64<<10+1)); n != 0 {
		t.Error("the webhook got the huge token")
	}
	if n := webhook.askedAboutToken("token-ann"); n != 0 {
		t.Error("the webhook got a token that the server knows")
	}
	for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusUnauthorized,
		"/version": http.StatusUnauthorized} {
		code := 0
		withToken(t, s, "").CoreV1().RESTClient().Get().AbsPath(path).Do(t.Context()).StatusCode(&code)
		if code != want {
			t.Errorf("%s without credentials: %d, want %d", path, code, want)
		}
	}
	testTokenReviews(t, s, i)
	testRightsOfIssuers(t, s, i)
	testExtensionAuthorities(t, s, people)
}

// testTokenReviews: a review says of a token what a request with it meets.
func testTokenReviews(t *testing.T, s *servertest.Server, i *issuertest.Issuer) {
	t.Helper()
	for _, row := range []struct {
		token     string
		audiences []string
		want      string
		error     string
	}{
		{i.Token(t, nil), nil, "oidc:ann", ""},
		{i.Token(t, nil), []string{"other"}, "", ""},
		{"bobs", nil, "bob", ""},
		{"nobodys", nil, "", ""},
		{i.Unsigned(t, nil), nil, "", "oidc: verify token"},
		{strings.Repeat("x", 64<<10+1), nil, "", "the token has 65537 bytes, more than 65536"},
	} {
		review, err := s.Client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: row.token, Audiences: row.audiences}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := review.Status; got.User.Username != row.want || got.Authenticated != (row.want != "") ||
			!strings.Contains(got.Error, row.error) || row.error == "" && got.Error != "" {
			t.Errorf("%.30s for %v: %+v, want %q, %q", row.token, row.audiences, got, row.want, row.error)
		}
	}
}

// testRightsOfIssuers: roles are bound to the names and groups of an issuer's users.
func testRightsOfIssuers(t *testing.T, s *servertest.Server, i *issuertest.Issuer) {
	t.Helper()
	ns := s.Namespace(t, "issued")
	dev := withToken(t, s, i.Token(t, map[string]any{"groups": "dev"}))
	_, err := s.Client.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "dev"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "oidc:dev"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the group has its rights", func(ctx context.Context) string {
		if _, err := dev.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	rules, err := dev.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: ns}},
		metav1.CreateOptions{})
	if err != nil || !strings.Contains(fmt.Sprint(rules.Status.ResourceRules), "pods/log") || rules.Status.Incomplete {
		t.Errorf("rules: %+v, %v", rules, err)
	}
	other := withToken(t, s, i.Token(t, map[string]any{"groups": "ops"}))
	if _, err := other.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), `User "oidc:ann" cannot list`) {
		t.Errorf("another group: %v", err)
	}
}

// testExtensionAuthorities: servers of APIServices believe the clients' authority, not that of proxies.
func testExtensionAuthorities(t *testing.T, s *servertest.Server, people *servertest.Authority) {
	t.Helper()
	got, err := s.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(),
		"extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ca := got.Data["client-ca-file"]; strings.Count(ca, "BEGIN CERTIFICATE") != 1 || ca != string(people.PEM()) {
		t.Errorf("client-ca-file is %s", ca)
	}
}

// A webhook that does not answer as one should costs a client with a token that only it may know a refusal, and other
// clients nothing.
func TestHostileTokenWebhooks(t *testing.T) {
	webhook := startReviewer(t, nil)
	s := servertest.Start(t, webhook.asked(t), func(c *inproc.Config) { c.TokenWebhook.CacheTTL = 0 })
	review := func(version, kind, answer string) http.HandlerFunc {
		return status("authentication.k8s.io/"+version, kind, answer)
	}
	visited := false
	for _, row := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"garbage", text("\x00\x01garbage"), "control characters are not allowed"},
		{"nothing", text(""), "0-length response"},
		{"another kind", text(`{"apiVersion":"v1","kind":"Status"}`), ""},
		{"rights", review("v1", "SubjectAccessReview", `{"allowed":true}`), ""},
		{"a name that is none", review("v1", "TokenReview", `{"authenticated":true}`), "somebody's without a name"},
		{"ten MiB", func(w http.ResponseWriter, _ *http.Request) {
			for range 10 {
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
			}
		}, "its answer has more than 1048576 bytes"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				visited = true
				return
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "it answers 307 Temporary Redirect, and no redirect is followed"},
		{"an end", dies, "unexpected EOF"},
		{"an error", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "out of order", http.StatusBadRequest)
		}, "the server rejected our request"},
		{"a refusal with words", review("v1", "TokenReview", `{"authenticated":false,"error":"go away"}`), "go away"},
	} {
		webhook.says(row.answer)
		if who, err := whoami(t, withToken(t, s, "strange")); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: %+v, %v", row.name, who, err)
		}
		got, err := s.Client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: "strange"}}, metav1.CreateOptions{})
		if err != nil || got.Status.Authenticated || !strings.Contains(got.Status.Error, row.want) ||
			len(got.Status.Error) > 1000 {
			t.Errorf("%s: %+v, %v, want %q", row.name, got, err, row.want)
		}
		if _, err := whoami(t, s.As(t, "ann")); err != nil {
			t.Errorf("%s: somebody else: %v", row.name, err)
		}
	}
	if visited {
		t.Error("a redirect was followed")
	}
}

// TestOneQuestionForManyRequests: requests at once with one token are one question, and the answer is believed for a
// while, a refusal too.
func TestOneQuestionForManyRequests(t *testing.T) {
	waiting, release := make(chan struct{}, 100), make(chan struct{})
	webhook := startReviewer(t, func(w http.ResponseWriter, r *http.Request) {
		waiting <- struct{}{}
		<-release
		knows("bobs")(w, r)
	})
	s := servertest.Start(t, webhook.asked(t))
	for _, token := range []string{"bobs", "nobodys"} {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_, err := whoami(t, withToken(t, s, token))
				if want := token == "bobs"; want != (err == nil) || !want && !apierrors.IsUnauthorized(err) {
					t.Errorf("%s: %v", token, err)
				}
			})
		}
		select {
		case <-waiting:
		case <-time.After(90 * time.Second):
			t.Fatal("the webhook is not asked")
		}
		// Another client does not wait for it.
		if _, err := whoami(t, s.As(t, "ann")); err != nil {
			t.Errorf("somebody else: %v", err)
		}
		release <- struct{}{}
		all.Wait()
		if n := webhook.askedAboutToken(token); n != 1 {
			t.Errorf("%s: the webhook was asked %d times", token, n)
		}
	}
	close(release)
}
