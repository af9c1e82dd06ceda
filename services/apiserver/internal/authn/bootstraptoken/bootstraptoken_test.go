package bootstraptoken

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// token is the Secret of abcdef.0123456789abcdef, edited.
func token(edits ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"},
		Type: "bootstrap.kubernetes.io/token", Data: map[string][]byte{"token-id": []byte("abcdef"),
			"token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true")}}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func has(key, value string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
}

func TestWhose(t *testing.T) {
	at := func(when time.Time) func(*corev1.Secret) { return has("expiration", when.Format(time.RFC3339)) }
	for _, row := range []struct {
		name   string
		secret *corev1.Secret
		want   string // the groups, or what the refusal says
	}{
		{"a token", token(), "system:bootstrappers"},
		{"of more groups", token(has("auth-extra-groups", "system:bootstrappers:b,system:bootstrappers:a")),
			"system:bootstrappers system:bootstrappers:a system:bootstrappers:b"},
		{"of a group of its own", token(has("auth-extra-groups", "system:bootstrappers:a,system:masters")),
			"auth-extra-groups: "},
		{"of a group that goes on", token(has("auth-extra-groups", "system:bootstrappers:a\nsystem:masters")),
			"auth-extra-groups: "},
		{"that ends in a second", token(at(now.Add(time.Second))), "system:bootstrappers"},
		{"that ends now", token(at(now)), "it has expired"},
		{"that ends some day", token(has("expiration", "soon")), "it has expired"},
		{"of another secret", token(has("token-secret", "0123456789abcdeg")), "its secret is another one"},
		{"of a longer secret", token(has("token-secret", "0123456789abcdef0")), "its secret is another one"},
		{"of no secret", token(has("token-secret", "")), "its secret is another one"},
		{"of another ID", token(has("token-id", "abcdeg")), "token-id is not the ID in its name"},
		{"for another use", token(has("usage-bootstrap-authentication", "yes")),
			`usage-bootstrap-authentication is not "true"`},
		{"for no use", token(func(s *corev1.Secret) { delete(s.Data, "usage-bootstrap-authentication") }),
			`usage-bootstrap-authentication is not "true"`},
		{"no token", token(func(s *corev1.Secret) { s.Type = "Opaque" }), `it is of the type "Opaque"`},
		{"that goes", token(func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: now} }),
			"it is being deleted"},
	} {
		who, err := whose("abcdef", "0123456789abcdef", row.secret, now)
		switch {
		case err != nil:
			if !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("%s: %v, want %q", row.name, err, row.want)
			}
		case who.GetName() != "system:bootstrap:abcdef" || strings.Join(who.GetGroups(), " ") != row.want:
			t.Errorf("%s: %s of %q, want %q", row.name, who.GetName(), who.GetGroups(), row.want)
		}
	}
}

// What is no bootstrap token costs no look, and one that is refused is as unknown as one that there is not.
func TestAuthenticator(t *testing.T) {
	var looked []string
	broken := errors.New("broken")
	a := &Authenticator{Now: func() time.Time { return now }, Log: zap.NewNop(),
		Secret: func(_ context.Context, namespace, name string) (*corev1.Secret, error) {
			looked = append(looked, namespace+"/"+name)
			switch name {
			case "bootstrap-token-abcdef":
				return token(), nil
			case "bootstrap-token-broken":
				return nil, broken
			}
			return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
		}}
	for _, row := range []struct {
		token string
		known bool
		err   error
		looks bool
	}{
		{"abcdef.0123456789abcdef", true, nil, true},
		{"abcdef.0123456789abcdeg", false, nil, true},
		{"zzzzzz.0123456789abcdef", false, nil, true},
		{"broken.0123456789abcdef", false, broken, true},
		{"ABCDEF.0123456789abcdef", false, nil, false},
		{"abcdef.0123456789abcdef\n", false, nil, false},
		{"abcdef.0123456789abcdef0", false, nil, false},
		{"../abc.0123456789abcdef", false, nil, false},
		{"eyJhbGciOiJSUzI1NiJ9.e30.x", false, nil, false},
		{"", false, nil, false},
	} {
		looked = nil
		response, known, err := a.AuthenticateToken(t.Context(), row.token)
		if known != row.known || known != (response != nil) || !errors.Is(err, row.err) ||
			(len(looked) > 0) != row.looks || slices.Contains(looked, "kube-system/bootstrap-token-../abc") {
			t.Errorf("%q: %v, %v, looked at %v", row.token, known, err, looked)
		}
	}
}
