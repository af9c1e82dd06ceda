package satoken

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/warning"
)

// holding returns a world whose Secret holds a token of its account, and the token.
func holding(t *testing.T, kind string) (*world, *Issuer, *Verifier, string) {
	t.Helper()
	w := newWorld()
	issuer, verifier := newPair(t, kind, w)
	token, err := issuer.IssueLegacy(LegacyOf(w.secret, w.account))
	if err != nil {
		t.Fatal(err)
	}
	w.secret.Type = corev1.SecretTypeServiceAccountToken
	w.secret.Data = map[string][]byte{"token": []byte(token)}
	return w, issuer, verifier, token
}

// What is in the token is what users of Kubernetes find there.
func TestClaimsOfALegacyToken(t *testing.T) {
	for _, kind := range []string{"RSA", "ECDSA"} {
		_, _, verifier, token := holding(t, kind)
		body, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
		const want = `{"iss":"kubernetes/serviceaccount","kubernetes.io/serviceaccount/namespace":"ns",` +
			`"kubernetes.io/serviceaccount/secret.name":"s","kubernetes.io/serviceaccount/service-account.name":"bot",` +
			`"kubernetes.io/serviceaccount/service-account.uid":"u1","sub":"system:serviceaccount:ns:bot"}`
		if err != nil || string(body) != want {
			t.Errorf("%s: claims %s, %v", kind, body, err)
		}
		response, ok, err := verifier.AuthenticateToken(t.Context(), token)
		if err != nil || !ok || response.User.GetName() != "system:serviceaccount:ns:bot" ||
			response.User.GetUID() != "u1" ||
			!slices.Contains(response.User.GetGroups(), "system:serviceaccounts:ns") ||
			!slices.Equal(response.Audiences, authenticator.Audiences{issuerName}) {
			t.Errorf("%s: %+v, %v, %v", kind, response, ok, err)
		}
	}
}

func TestWhenALegacyTokenIsBelieved(t *testing.T) {
	now := metav1.NewTime(start)
	for _, row := range []struct {
		name   string
		edit   func(w *world)
		refuse string // part of the reason; empty: believed
	}{
		{"at once", func(*world) {}, ""},
		{"its secret is gone", func(w *world) { w.secret = nil }, "does not exist"},
		{"its secret is on its way out", func(w *world) { w.secret.DeletionTimestamp = &now }, "does not exist"},
		{"its secret holds another one", func(w *world) { w.secret.Data["token"] = []byte("x") }, "another token"},
		{"its secret holds none", func(w *world) { w.secret.Data = nil }, "another token"},
		{"its secret is of another type", func(w *world) { w.secret.Type = corev1.SecretTypeOpaque }, "another token"},
		{"its account is gone", func(w *world) { w.account = nil }, "service account ns/bot does not exist"},
		{"its account is on its way out", func(w *world) { w.account.DeletionTimestamp = &now },
			"service account ns/bot does not exist"},
		{"its account was made anew", func(w *world) { w.account.UID = "other" }, "replaced"},
		{"it was marked invalid",
			func(w *world) { w.secret.Labels = map[string]string{InvalidSinceLabel: "2025-01-01"} }, "marked invalid"},
		{"its secret is newer than the cache", func(w *world) { w.cachedSecret = &corev1.Secret{} }, ""},
		{"its account is newer than the cache", func(w *world) { w.cachedAccount = &corev1.ServiceAccount{} }, ""},
		{"the mark was taken away a moment ago", func(w *world) {
			w.cachedSecret = w.secret.DeepCopy()
			w.cachedSecret.Labels = map[string]string{InvalidSinceLabel: "2025-01-01"}
		}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			w, _, verifier, token := holding(t, "ECDSA")
			row.edit(w)
			_, ok, err := verifier.AuthenticateToken(t.Context(), token)
			if row.refuse == "" && (!ok || err != nil) {
				t.Errorf("believed %v, %v", ok, err)
			}
			if row.refuse != "" && (ok || err == nil || !strings.Contains(err.Error(), row.refuse)) {
				t.Errorf("believed %v, %v, want an error with %q", ok, err, row.refuse)
			}
			// Whoever uses a token that was marked invalid still uses it.
			if recorded := len(w.recorded) == 1; recorded != (row.refuse == "" || row.refuse == "marked invalid") {
				t.Errorf("recorded: %v", w.recorded)
			}
		})
	}
}

func TestLegacyTokensOfOthers(t *testing.T) {
	w, issuer, verifier, _ := holding(t, "ECDSA")
	forger, _ := newPair(t, "ECDSA", w)
	refused := func(name, token string) {
		t.Helper()
		w.secret.Data["token"] = []byte(token)
		if _, ok, err := verifier.AuthenticateToken(t.Context(), token); ok || err == nil {
			t.Errorf("%s: believed %v, %v, want an error", name, ok, err)
		}
	}
	sign := func(by *Issuer, edit func(*Legacy)) string {
		l := LegacyOf(w.secret, w.account)
		edit(&l)
		token, err := by.IssueLegacy(l)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	refused("another key", sign(forger, func(*Legacy) {}))
	refused("no namespace", sign(issuer, func(l *Legacy) { l.Namespace = "" }))
	refused("no secret", sign(issuer, func(l *Legacy) { l.Secret = "" }))
	refused("no account", sign(issuer, func(l *Legacy) { l.Account = "" }))
	refused("no UID", sign(issuer, func(l *Legacy) { l.AccountUID = "" }))
	elsewhere := authenticator.WithAudiences(t.Context(), authenticator.Audiences{"vault"})
	if _, ok, err := verifier.AuthenticateToken(elsewhere, sign(issuer, func(*Legacy) {})); ok || err == nil {
		t.Errorf("for an audience of somebody else: %v, %v", ok, err)
	}
	// The legacy issuer's name gives a token no other audience and no end that its Secret's token has not.
	bound, err := NewIssuer(LegacyIssuer, newSigner(t, "ECDSA"))
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.keys.Add(bound.Public()); err != nil {
		t.Fatal(err)
	}
	refused("bound, of an issuer that is not ours", issue(t, bound, Bound{ServiceAccount: w.account}, hour(issuerName)))
}

// An issuer may be called as the one of Secrets' tokens is.
func TestIssuerOfTheLegacyName(t *testing.T) {
	w := newWorld()
	issuer, err := NewIssuer(LegacyIssuer, newSigner(t, "ECDSA"))
	if err != nil {
		t.Fatal(err)
	}
	keys := Keys{}
	if err := keys.Add(issuer.Public()); err != nil {
		t.Fatal(err)
	}
	verifier := NewVerifier([]string{LegacyIssuer}, []string{"api"}, keys, w, w.record)
	verifier.now = func() time.Time { return start }
	if _, ok, err := verifier.AuthenticateToken(t.Context(),
		issue(t, issuer, Bound{ServiceAccount: w.account}, hour("api"))); !ok || err != nil {
		t.Errorf("a bound token: believed %v, %v", ok, err)
	}
	token, err := issuer.IssueLegacy(LegacyOf(w.secret, w.account))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := verifier.AuthenticateToken(t.Context(), token); ok || err == nil {
		t.Errorf("a token that no Secret holds: believed %v, %v", ok, err)
	}
}

func TestRecordDue(t *testing.T) {
	night := time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)
	for _, row := range []struct {
		last string
		want bool
	}{{"", true}, {"2026-01-30", true}, {"2026-01-31", false}, {"2026-02-01", false}, {"2026-02-02", true},
		{"never", true}} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LastUsedLabel: row.last}}}
		if got := recordDue(secret, night.In(time.FixedZone("east", 3600))); got != row.want {
			t.Errorf("after %q: %v", row.last, got)
		}
	}
	w, _, verifier, token := holding(t, "ECDSA")
	if _, _, err := verifier.AuthenticateToken(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.recorded, []string{"s 2026-01-02"}) {
		t.Errorf("recorded %v", w.recorded)
	}
}

// warnings keeps what a client is warned of.
type warnings []string

// AddWarning implements warning.Recorder.
func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// Only tokens that were made for the account are warned about: its list tells them.
func TestWarningOfAutoGeneratedTokens(t *testing.T) {
	for _, listed := range []bool{false, true} {
		w, _, verifier, token := holding(t, "ECDSA")
		w.account.Secrets = []corev1.ObjectReference{{Name: "other"}}
		if listed {
			w.account.Secrets = append(w.account.Secrets, corev1.ObjectReference{Name: "s"})
		}
		var got warnings
		ctx := warning.WithWarningRecorder(context.Background(), &got)
		if _, ok, err := verifier.AuthenticateToken(ctx, token); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if want := listed; (len(got) == 1 && strings.Contains(got[0], "auto-generated secret-based tokens")) != want {
			t.Errorf("listed %v: warnings %q", listed, got)
		}
	}
}

func TestReadLegacy(t *testing.T) {
	w, issuer, _, token := holding(t, "ECDSA")
	want := LegacyOf(w.secret, w.account)
	if got := ReadLegacy([]byte(token)); got != want {
		t.Errorf("got %+v", got)
	}
	parts := strings.Split(token, ".")
	foreign := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"kubernetes/serviceaccount","sub":"admin",` +
		`"kubernetes.io/serviceaccount/namespace":"ns"}`))
	for name, text := range map[string]string{
		"nothing": "", "no token": "abc", "a bound token": issue(t, issuer, Bound{ServiceAccount: w.account},
			hour(issuerName)), "another subject": parts[0] + "." + foreign + "." + parts[2],
	} {
		if got := ReadLegacy([]byte(text)); got != (Legacy{}) {
			t.Errorf("%s says %+v", name, got)
		}
	}
}
