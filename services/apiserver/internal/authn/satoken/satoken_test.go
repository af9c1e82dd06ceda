package satoken

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/ptr"
)

const issuerName = "https://issuer"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is what tokens are bound to.
type world struct {
	account *corev1.ServiceAccount
	pod     *corev1.Pod
	secret  *corev1.Secret
	node    *corev1.Node
	// cachedSecret and cachedAccount are shown to who does not ask for what is current, if they are set.
	cachedSecret  *corev1.Secret
	cachedAccount *corev1.ServiceAccount
	// recorded are the uses that were recorded, as SECRET DAY.
	recorded []string
}

func newWorld() *world {
	meta := func(name string, uid types.UID) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}
	}
	return &world{
		account: &corev1.ServiceAccount{ObjectMeta: meta("bot", "u1")},
		pod:     &corev1.Pod{ObjectMeta: meta("p", "u2")},
		secret:  &corev1.Secret{ObjectMeta: meta("s", "u3")},
		node:    &corev1.Node{ObjectMeta: meta("n", "u4")},
	}
}

func found[O any](obj *O, name string) (*O, error) {
	if obj == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("things"), name)
	}
	return obj, nil
}

func (w *world) ServiceAccount(_ context.Context, _, name string) (*corev1.ServiceAccount, error) {
	return found(cmp.Or(w.cachedAccount, w.account), name)
}
func (w *world) CurrentServiceAccount(_ context.Context, _, name string) (*corev1.ServiceAccount, error) {
	return found(w.account, name)
}
func (w *world) Pod(_ context.Context, _, name string) (*corev1.Pod, error) {
	return found(w.pod, name)
}
func (w *world) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	return found(cmp.Or(w.cachedSecret, w.secret), name)
}
func (w *world) CurrentSecret(_ context.Context, _, name string) (*corev1.Secret, error) {
	return found(w.secret, name)
}
func (w *world) Node(_ context.Context, name string) (*corev1.Node, error) {
	return found(w.node, name)
}

func (w *world) record(_ context.Context, secret *corev1.Secret, day string) {
	w.recorded = append(w.recorded, secret.Name+" "+day)
}

func newSigner(t *testing.T, kind string) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	if kind == "RSA" {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newPair(t *testing.T, kind string, w *world) (*Issuer, *Verifier) {
	t.Helper()
	issuer, err := NewIssuer(issuerName, newSigner(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	keys := Keys{}
	if err := keys.Add(issuer.Public()); err != nil {
		t.Fatal(err)
	}
	verifier := NewVerifier([]string{issuerName}, []string{issuerName}, keys, w, w.record)
	verifier.now = func() time.Time { return start }
	return issuer, verifier
}

func hour(audiences ...string) authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: ptr.To(int64(3600))}
}

func issue(t *testing.T, issuer *Issuer, b Bound, spec authenticationv1.TokenRequestSpec) string {
	t.Helper()
	status, err := issuer.Issue(b, spec, start)
	if err != nil {
		t.Fatal(err)
	}
	if want := start.Add(time.Hour); !status.ExpirationTimestamp.Time.Equal(want) {
		t.Errorf("expires %v, want %v", status.ExpirationTimestamp, want)
	}
	return status.Token
}

func TestTokenOfAPod(t *testing.T) {
	for _, kind := range []string{"RSA", "ECDSA"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld()
			issuer, verifier := newPair(t, kind, w)
			token := issue(t, issuer, Bound{ServiceAccount: w.account, Pod: w.pod, Node: w.node}, hour(issuerName))
			response, ok, err := verifier.AuthenticateToken(t.Context(), token)
			if err != nil || !ok {
				t.Fatalf("believed %v, %v", ok, err)
			}
			if name := response.User.GetName(); name != "system:serviceaccount:ns:bot" {
				t.Errorf("user %s", name)
			}
			extra := response.User.GetExtra()
			for key, want := range map[string]string{
				"authentication.kubernetes.io/pod-name": "p", "authentication.kubernetes.io/pod-uid": "u2",
				"authentication.kubernetes.io/node-name": "n", "authentication.kubernetes.io/node-uid": "u4",
			} {
				if got := strings.Join(extra[key], ","); got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
		})
	}
}

func TestWhenATokenIsBelieved(t *testing.T) {
	deleted := func(ago time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(start.Add(-ago))) }
	rows := []struct {
		name   string
		bound  func(w *world) Bound
		later  func(w *world, v *Verifier) context.Context
		refuse string // part of the reason; empty: believed
	}{
		{"at once", nil, nil, ""},
		{"after its hour", nil, func(_ *world, v *Verifier) context.Context {
			v.now = func() time.Time { return start.Add(time.Hour + time.Minute) }
			return context.Background()
		}, "expired"},
		{"before its time", nil, func(_ *world, v *Verifier) context.Context {
			v.now = func() time.Time { return start.Add(-time.Minute) }
			return context.Background()
		}, "not valid yet"},
		{"for an audience that the caller asks for", nil, func(*world, *Verifier) context.Context {
			return authenticator.WithAudiences(context.Background(), authenticator.Audiences{"x", issuerName})
		}, ""},
		{"for another audience", nil, func(*world, *Verifier) context.Context {
			return authenticator.WithAudiences(context.Background(), authenticator.Audiences{"x"})
		}, "not for"},
		{"account gone", nil, func(w *world,
			_ *Verifier) context.Context {
			w.account = nil
			return context.Background()
		}, "does not exist any more"},
		{"account made anew", nil, func(w *world,
			_ *Verifier) context.Context {
			w.account.UID = "other"
			return context.Background()
		}, "has been replaced"},
		{"pod terminating", podBound, func(w *world, _ *Verifier) context.Context {
			w.pod.DeletionTimestamp = deleted(30 * time.Second)
			return context.Background()
		}, ""},
		{"pod deleted a while ago", podBound, func(w *world, _ *Verifier) context.Context {
			w.pod.DeletionTimestamp = deleted(90 * time.Second)
			return context.Background()
		}, "has been deleted"},
		{"pod gone", podBound, func(w *world, _ *Verifier) context.Context { w.pod = nil; return context.Background() },
			"does not exist any more"},
		{"pod of that name made anew", podBound,
			func(w *world, _ *Verifier) context.Context { w.pod.UID = "other"; return context.Background() },
			"has been replaced"},
		{"node of the pod gone", podBound,
			func(w *world, _ *Verifier) context.Context { w.node = nil; return context.Background() }, ""},
		{"secret gone", func(w *world) Bound { return Bound{ServiceAccount: w.account, Secret: w.secret} },
			func(w *world, _ *Verifier) context.Context { w.secret = nil; return context.Background() },
			"does not exist any more"},
		{"node gone", func(w *world) Bound { return Bound{ServiceAccount: w.account, Node: w.node} },
			func(w *world, _ *Verifier) context.Context { w.node = nil; return context.Background() },
			"does not exist any more"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld()
			issuer, verifier := newPair(t, "ECDSA", w)
			bound := Bound{ServiceAccount: w.account}
			if row.bound != nil {
				bound = row.bound(w)
			}
			token := issue(t, issuer, bound, hour(issuerName))
			ctx := t.Context()
			if row.later != nil {
				ctx = row.later(w, verifier)
			}
			_, ok, err := verifier.AuthenticateToken(ctx, token)
			if row.refuse == "" && (!ok || err != nil) {
				t.Errorf("believed %v, %v", ok, err)
			}
			if row.refuse != "" && (ok || err == nil || !strings.Contains(err.Error(), row.refuse)) {
				t.Errorf("believed %v, %v, want an error with %q", ok, err, row.refuse)
			}
		})
	}
}

func podBound(w *world) Bound { return Bound{ServiceAccount: w.account, Pod: w.pod, Node: w.node} }

func TestTokensOfOthers(t *testing.T) {
	w := newWorld()
	issuer, verifier := newPair(t, "ECDSA", w)
	forger, _ := newPair(t, "ECDSA", w)
	bound := Bound{ServiceAccount: w.account}
	if _, ok, err := verifier.AuthenticateToken(t.Context(), issue(t, forger, bound, hour(issuerName))); ok ||
		err == nil {
		t.Errorf("a token with another key: believed %v, %v, want an error", ok, err)
	}
	stranger, err := NewIssuer("https://elsewhere", newSigner(t, "ECDSA"))
	if err != nil {
		t.Fatal(err)
	}
	// Neither believed nor an error: another authenticator may know them.
	for name, token := range map[string]string{
		"another issuer":   issue(t, stranger, bound, hour(issuerName)),
		"not a web token":  "abc",
		"looks like a one": "a.b.c",
	} {
		if _, ok, err := verifier.AuthenticateToken(t.Context(), token); ok || err != nil {
			t.Errorf("%s: believed %v, %v", name, ok, err)
		}
	}
	token := issue(t, issuer, bound, hour(issuerName))
	parts := strings.Split(token, ".")
	other := strings.Split(issue(t, issuer, Bound{ServiceAccount: w.account, Pod: w.pod}, hour(issuerName)), ".")
	mixed := parts[0] + "." + other[1] + "." + parts[2]
	if _, ok, err := verifier.AuthenticateToken(t.Context(), mixed); ok || err == nil {
		t.Errorf("claims under another token's signature: believed %v, %v, want an error", ok, err)
	}
}

func TestKeySet(t *testing.T) {
	keys := Keys{}
	for _, kind := range []string{"RSA", "ECDSA"} {
		if err := keys.Add(newSigner(t, kind).Public()); err != nil {
			t.Fatal(err)
		}
	}
	set, err := keys.JSONWebKeySet()
	if err != nil || len(set.Keys) != 2 {
		t.Fatalf("%d keys, %v", len(set.Keys), err)
	}
	for _, key := range set.Keys {
		if !key.IsPublic() || !key.Valid() || key.KeyID == "" {
			t.Errorf("published key %+v", key)
		}
	}
}
