package authenticationconfig

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"keelson.dev/services/apiserver/internal/authn/issuertest"
	"keelson.dev/services/apiserver/internal/followedfile"
	"keelson.dev/services/apiserver/internal/followedfile/followedfiletest"
)

// Files are looked at every moment, not once a minute.
func init() { followedfile.Interval = 50 * time.Millisecond }

// limit is how long a test waits for what must come.
const limit = 90 * time.Second

// entry is an issuer as the file has it, with more about it.
func entry(i *issuertest.Issuer, more string) string {
	authority := strings.ReplaceAll(strings.TrimSpace(i.Authority()), "\n", "\n      ")
	return fmt.Sprintf("- issuer:\n    url: %s\n    audiences: [mesh]\n    certificateAuthority: |\n      %s\n%s",
		i.URL, authority, more)
}

// bySub is the simplest mapping.
const bySub = "  claimMappings: {username: {claim: sub, prefix: \"example:\"}}\n"

func openFile(t *testing.T, text string, change ...func(*Authenticators)) (*Authenticators, string) {
	t.Helper()
	options := NewOptions()
	options.ConfigFile = writeFile(t, text)
	return open(t, options, change...), options.ConfigFile
}

func open(t *testing.T, options Options, change ...func(*Authenticators)) *Authenticators {
	t.Helper()
	a, err := Open(options, Config{ServerID: t.Name(), Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	for _, c := range change {
		c(a)
	}
	return a
}

// known waits until the issuers have answered.
func known(t *testing.T, a *Authenticators) *Authenticators {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := a.issuers.Load().await(ctx); err != nil {
		t.Fatal(err)
	}
	return a
}

// await waits for what must come; what says that it has not.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, limit, true,
		func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatal(what)
	}
}

// whose is the user of a token, "nobody", or why it is refused.
func whose(t *testing.T, a *Authenticators, token string) string {
	t.Helper()
	response, ok, err := a.Tokens().AuthenticateToken(t.Context(), token)
	switch {
	case err != nil:
		return "refused: " + err.Error()
	case !ok:
		return "nobody"
	}
	return response.User.GetName()
}

// TestTokens: who is believed to be who, by claims and by expressions.
func TestTokens(t *testing.T) {
	i, other := issuertest.Start(t), issuertest.Start(t)
	a, _ := openFile(t, head+"jwt:\n"+entry(i, `  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: "!has(claims.level) || claims.level < 3", message: level is too high}
  claimMappings:
    username: {expression: '"example:" + claims.sub'}
    groups: {expression: 'has(claims.roles) ? dyn(claims.roles).map(r, "example:" + r) : []'}
    uid: {claim: sub}
    extra: [{key: example.com/tenant, valueExpression: 'has(claims.tenant) ? claims.tenant : ""'}]
  userValidationRules:
  - {expression: "!user.username.contains('system:')", message: names of the system are not for issuers}
  - {expression: "user.groups.all(g, !g.startsWith('system:'))", message: groups of the system are not for issuers}
`))
	known(t, a)
	claims := func(more map[string]any) map[string]any {
		out := map[string]any{"hd": "example.com"}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	now := time.Now()
	for _, row := range []struct {
		name, token string
		// want is the user, or how the refusal begins behind "oidc: ".
		want string
	}{
		{"a good one", i.Token(t, claims(nil)), "example:ann"},
		{"of several audiences", i.Token(t, claims(map[string]any{"aud": []string{"x", "mesh"}})), "example:ann"},
		{"for somebody else", i.Token(t, claims(map[string]any{"aud": "other"})),
			"refused: oidc: verify token: oidc: expected audience"},
		{"that has ended", i.Token(t, claims(map[string]any{"exp": now.Add(-time.Minute).Unix()})),
			"refused: oidc: verify token: oidc: token is expired"},
		{"that has just not", i.Token(t, claims(map[string]any{"exp": now.Add(time.Minute).Unix()})), "example:ann"},
		{"that begins later", i.Token(t, claims(map[string]any{"nbf": now.Add(time.Hour).Unix()})),
			"refused: oidc: verify token: oidc: current time"},
		{"of another issuer", other.Token(t, claims(nil)), "nobody"},
		{"signed by another issuer", other.Token(t, claims(map[string]any{"iss": i.URL})),
			"refused: oidc: verify token: failed to verify signature"},
		{"signed by nobody", i.Unsigned(t, claims(nil)), "refused: oidc: verify token: oidc: "},
		{"without a name", i.Token(t, claims(map[string]any{"sub": nil})), "refused: "},
		{"without a required claim", i.Token(t, nil), "refused: oidc: required claim hd not present in ID token"},
		{"with another value of it", i.Token(t, map[string]any{"hd": "example.org"}),
			"refused: oidc: required claim hd value does not match"},
		{"just below a bound", i.Token(t, claims(map[string]any{"level": 2})), "example:ann"},
		{"at the bound", i.Token(t, claims(map[string]any{"level": 3})),
			"refused: oidc: error evaluating claim validation expression: validation expression"},
		{"of a name of the system", i.Token(t, claims(map[string]any{"sub": "system:admin"})),
			"refused: oidc: error evaluating user info validation rule: validation expression"},
		{"of a type that the expression does not take", i.Token(t, claims(map[string]any{"roles": 1})),
			"refused: oidc: error evaluating group claim expression"},
		{"no token", "a.b.c", "nobody"},
		{"nothing", "", "nobody"},
	} {
		if got := whose(t, a, row.token); got != row.want &&
			(!strings.HasPrefix(row.want, "refused: ") || !strings.HasPrefix(got, row.want)) {
			t.Errorf("%s: %s\nwant %s", row.name, got, row.want)
		}
	}
	response, _, err := a.Tokens().AuthenticateToken(t.Context(), i.Token(t, claims(map[string]any{
		"roles": []string{"system:masters", "dev"}, "tenant": "red", "jti": "7"})))
	if err != nil {
		t.Fatal(err)
	}
	if got := response.User.GetGroups(); !reflect.DeepEqual(got, []string{"example:system:masters", "example:dev"}) {
		t.Errorf("groups %q", got)
	}
	if got := response.User.GetExtra(); !reflect.DeepEqual(got["example.com/tenant"], []string{"red"}) ||
		response.User.GetUID() != "ann" {
		t.Errorf("%+v", response.User)
	}
}

// TestGroupsOfTheSystem: an issuer that may say any group is kept from those of the system by a rule alone.
func TestGroupsOfTheSystem(t *testing.T) {
	i := issuertest.Start(t)
	const mapping = "  claimMappings: {username: {claim: sub, prefix: \"\"}, groups: {claim: groups, prefix: \"\"}}\n"
	const rule = `  userValidationRules:
  - {expression: "!user.groups.exists(g, g.startsWith('system:'))", message: not for issuers}
`
	masters := map[string]any{"groups": "system:masters"}
	for _, row := range []struct {
		more, want string
	}{
		{mapping, "ann"},
		{mapping + rule, "refused: oidc: error evaluating user info validation rule"},
	} {
		a, _ := openFile(t, head+"jwt:\n"+entry(i, row.more))
		if got := whose(t, known(t, a), i.Token(t, masters)); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %s, want %s", row.more, got, row.want)
		}
	}
}

// TestKeysChange: a new key of an issuer is known when its first token comes; one that is gone is not believed from
// then on.
func TestKeysChange(t *testing.T) {
	i := issuertest.Start(t)
	a, _ := openFile(t, head+"jwt:\n"+entry(i, bySub))
	before := i.Token(t, nil)
	if got := whose(t, known(t, a), before); got != "example:ann" {
		t.Errorf("before: %s", got)
	}
	i.Rotate(t)
	if got := whose(t, a, i.Token(t, nil)); got != "example:ann" {
		t.Errorf("after: %s", got)
	}
	if got := whose(t, a, before); !strings.HasPrefix(got, "refused: ") {
		t.Errorf("a token of the key that is gone: %s", got)
	}
}

// TestIssuersThatAreOfNoUse: the start waits for no issuer, and an issuer's tokens are refused until it is known.
func TestIssuersThatAreOfNoUse(t *testing.T) {
	endless := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 10 << 10 {
			if _, err := w.Write([]byte(strings.Repeat(" ", 1<<10))); err != nil {
				return
			}
		}
	}
	for _, row := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"hangs", issuertest.Hang, "is not initialized"},
		{"answers without end", endless, "its answer has more than 1048576 bytes"},
		{"answers garbage", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
			"invalid character '<'"},
		{"is somebody else", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"issuer":"https://other","jwks_uri":"https://other/keys"}`))
		}, "issuer did not match"},
		{"leads in circles", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, issuertest.Description, http.StatusFound)
		}, "stopped after 10 redirects"},
	} {
		t.Run(row.name, func(t *testing.T) {
			i := issuertest.Start(t)
			i.Answer(issuertest.Description, row.answer)
			a, _ := openFile(t, head+"jwt:\n"+entry(i, bySub))
			if got := whose(t, a, i.Token(t, nil)); got != "refused: oidc: authenticator not initialized" {
				t.Errorf("its token: %s", got)
			}
			await(t, "it is not told: "+row.want, func() bool {
				err := a.issuers.Load().unknown()
				return err != nil && strings.Contains(err.Error(), row.want)
			})
		})
	}
}

// TestFlagsNameOneIssuer: the flags' algorithms alone are taken.
func TestFlagsNameOneIssuer(t *testing.T) {
	i := issuertest.Start(t)
	for _, row := range []struct {
		algorithms []string
		want       string
	}{
		{[]string{"ES256"}, "p:ann"},
		{[]string{"RS256"}, "refused: oidc: verify token: oidc: id token signed with unsupported algorithm"},
	} {
		options := NewOptions()
		options.OIDC = OIDC{IssuerURL: i.URL, ClientID: issuertest.Audience, CAFile: writeFile(t, i.Authority()),
			UsernameClaim: "sub", UsernamePrefix: "p:", SigningAlgs: row.algorithms}
		if got := whose(t, known(t, open(t, options)), i.Token(t, nil)); !strings.HasPrefix(got, row.want) {
			t.Errorf("%v: %s, want %s", row.algorithms, got, row.want)
		}
	}
	options := NewOptions()
	options.OIDC.IssuerURL, options.OIDC.ClientID = "http://i", "c"
	_, err := Open(options, Config{Log: zap.NewNop()})
	want := `--oidc-*, of which jwt[0] is made: jwt[0].issuer.url: Invalid value: "http://i": URL scheme must be https`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// anonymousAt is whether a request of the path may be anonymous.
func anonymousAt(t *testing.T, a *Authenticators, path string) bool {
	t.Helper()
	if a.Anonymous() == nil {
		return false
	}
	response, ok, err := a.Anonymous().AuthenticateRequest(httptest.NewRequest(http.MethodGet, path, nil))
	if err != nil || ok && response.User.GetName() != "system:anonymous" {
		t.Fatalf("%v, %v", response, err)
	}
	return ok
}

// TestAnonymous: who sends no credentials is let in where the flag or the file says so.
func TestAnonymous(t *testing.T) {
	off := NewOptions()
	off.Anonymous = false
	offWithFile := off
	offWithFile.ConfigFile = writeFile(t, head)
	some, _ := openFile(t, head+"anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}]}\n")
	none, _ := openFile(t, head+"anonymous: {enabled: false}\n")
	silent, _ := openFile(t, head)
	for _, row := range []struct {
		name       string
		a          *Authenticators
		livez, api bool
	}{
		{"by default", open(t, NewOptions()), true, true},
		{"the flag", open(t, off), false, false},
		{"some paths", some, true, false},
		{"no path", none, false, false},
		{"a file that says nothing", silent, true, true},
		{"a file that says nothing, and the flag", open(t, offWithFile), false, false},
	} {
		if got := anonymousAt(t, row.a, "/livez"); got != row.livez {
			t.Errorf("%s: /livez %v", row.name, got)
		}
		for _, path := range []string{"/api/v1/pods", "/livez/etcd", "/"} {
			if got := anonymousAt(t, row.a, path); got != row.api {
				t.Errorf("%s: %s %v", row.name, path, got)
			}
		}
	}
	if open(t, NewOptions()).Tokens() != nil {
		t.Error("where nothing is configured there is somebody who looks at tokens")
	}
}

// reloads are how many changes of the test's file were counted as a status.
func reloads(t *testing.T, status string) (n float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "apiserver_authentication_config_controller_automatic_reloads_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "status" && label.GetValue() == status {
					n += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// TestChangesOfTheFile: what can be followed comes into force, what cannot leaves in force what was, and both are told.
func TestChangesOfTheFile(t *testing.T) {
	metrics.RegisterMetrics()
	metrics.ResetMetricsForTest()
	first, second := issuertest.Start(t), issuertest.Start(t)
	core, lines := observer.New(zap.ErrorLevel)
	a, path := openFile(t, head+"jwt:\n"+entry(first, bySub), func(a *Authenticators) {
		a.wait, a.file.Log = time.Second, zap.New(core)
	})
	known(t, a)
	a.Follow()
	unchanged := func(what, told string) {
		t.Helper()
		failures := reloads(t, "failure")
		await(t, what+": no failure is counted", func() bool { return reloads(t, "failure") > failures })
		await(t, what+" is not told: "+told, func() bool {
			for _, line := range lines.All() {
				if strings.Contains(fmt.Sprint(line.ContextMap()["error"]), told) {
					return true
				}
			}
			return false
		})
		if got := whose(t, a, first.Token(t, nil)); got != "example:ann" {
			t.Errorf("%s: the issuer of before: %s", what, got)
		}
		if got := whose(t, a, second.Token(t, nil)); got != "nobody" {
			t.Errorf("%s: the new issuer: %s", what, got)
		}
		if !anonymousAt(t, a, "/api") {
			t.Errorf("%s: nobody is anonymous any more", what)
		}
	}
	const nobody = "anonymous: {enabled: false}\n"
	followedfiletest.Replace(t, path, head+nobody+"jwt:\n"+entry(second, bySub)+"  claim: x\n")
	unchanged("a field that is none", `unknown field "jwt[0].claim"`)

	second.Answer(issuertest.Description, issuertest.Hang)
	followedfiletest.Replace(t, path, head+nobody+"jwt:\n"+entry(second, bySub))
	unchanged("an issuer that hangs", "is not initialized")

	second.Answer(issuertest.Description, nil)
	followedfiletest.Replace(t, path, head+nobody+"jwt:\n"+entry(second, bySub)+"\n")
	await(t, "the new issuer is not in force", func() bool {
		return whose(t, a, second.Token(t, nil)) == "example:ann"
	})
	if got := whose(t, a, first.Token(t, nil)); got != "nobody" {
		t.Errorf("the issuer that is gone from the file: %s", got)
	}
	await(t, "anonymous requests are still let in", func() bool { return !anonymousAt(t, a, "/livez") })
	await(t, "no success is counted", func() bool { return reloads(t, "success") == 1 })
}
