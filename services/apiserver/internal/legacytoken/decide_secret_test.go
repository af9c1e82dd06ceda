package legacytoken

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/authn/satoken"
)

const bundle = "-----BEGIN CERTIFICATE-----\n"

func account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "bot", UID: "u1"}}
}

// made is a Secret as a user makes it.
func made() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "s", UID: "u2", ResourceVersion: "7",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "bot"}},
		Type: corev1.SecretTypeServiceAccountToken,
	}
}

func newIssuer(t *testing.T) *satoken.Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := satoken.NewIssuer("https://issuer", key)
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

// filled is what made becomes.
func filled(t *testing.T) *corev1.Secret {
	t.Helper()
	s := made()
	token, err := newIssuer(t).IssueLegacy(satoken.LegacyOf(s, account()))
	if err != nil {
		t.Fatal(err)
	}
	s.Annotations[corev1.ServiceAccountUIDKey] = "u1"
	s.Data = map[string][]byte{"token": []byte(token), "ca.crt": []byte(bundle), "namespace": []byte("team")}
	return s
}

func TestDecide(t *testing.T) {
	type edit func(in *Input)
	now := metav1.Now()
	other := func() *corev1.ServiceAccount { a := account(); a.Name = "other"; return a }
	foreign, err := newIssuer(t).IssueLegacy(satoken.LegacyOf(made(), other()))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		edit edit
		want string // delete, or what is written: sign and keys; empty: nothing
	}{
		{"as it must be", func(*Input) {}, ""},
		{"new", func(in *Input) { in.Secret = made() }, "sign ca.crt namespace uid"},
		{"new, and nobody has published the CA", func(in *Input) { in.Secret, in.RootCA = made(), nil },
			"sign namespace uid"},
		{"new, and there is no key", func(in *Input) { in.Secret, in.Signs = made(), false }, "ca.crt namespace uid"},
		{"no token", func(in *Input) { delete(in.Secret.Data, "token") }, "sign"},
		{"an empty token", func(in *Input) { in.Secret.Data["token"] = nil }, "sign"},
		{"no token at all", func(in *Input) { in.Secret.Data["token"] = []byte("x") }, "sign"},
		{"the token of another account", func(in *Input) { in.Secret.Data["token"] = []byte(foreign) }, "sign"},
		{"the token of another secret", func(in *Input) {
			in.Secret.Name = "t"
		}, "sign"},
		{"another CA", func(in *Input) { in.Secret.Data["ca.crt"] = []byte("x") }, "ca.crt"},
		{"another CA, and nobody has published one",
			func(in *Input) { in.Secret.Data["ca.crt"], in.RootCA = []byte("x"), nil }, ""},
		{"another namespace", func(in *Input) { in.Secret.Data["namespace"] = []byte("x") }, "namespace"},
		{"no namespace", func(in *Input) { delete(in.Secret.Data, "namespace") }, "namespace"},
		{"keys of a user", func(in *Input) { in.Secret.Data["mine"] = []byte("x") }, ""},
		{"no UID", func(in *Input) { delete(in.Secret.Annotations, corev1.ServiceAccountUIDKey) }, "uid"},
		{"no account", func(in *Input) { in.Account = nil }, "delete"},
		{"no account, and it is new", func(in *Input) { in.Secret, in.Account = made(), nil }, "delete"},
		{"no account, and it is immutable",
			func(in *Input) { in.Secret.Immutable, in.Account = ptr.To(true), nil }, "delete"},
		{"an account that was made anew", func(in *Input) { in.Account.UID = "u9" }, "delete"},
		{"an account on its way out",
			func(in *Input) { in.Secret = made(); in.Account.DeletionTimestamp = &now }, ""},
		{"on its way out", func(in *Input) {
			in.Secret = made()
			in.Secret.DeletionTimestamp, in.Account = &now, nil
		}, ""},
		{"of another type", func(in *Input) { in.Secret = made(); in.Secret.Type = corev1.SecretTypeOpaque }, ""},
		{"of another type, without the account", func(in *Input) {
			in.Secret.Type, in.Account = corev1.SecretTypeOpaque, nil
		}, ""},
		{"names no account", func(in *Input) { in.Secret.Annotations, in.Account = nil, nil }, ""},
		{"immutable", func(in *Input) { in.Secret = made(); in.Secret.Immutable = ptr.To(true) }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := Input{Secret: filled(t), Account: account(), RootCA: []byte(bundle), Signs: true}
			row.edit(&in)
			before := in.Secret.DeepCopy()
			plan := Decide(in)
			if got := effect(in, plan); got != row.want {
				t.Errorf("does %q, want %q", got, row.want)
			}
			if !reflect.DeepEqual(in.Secret, before) {
				t.Error("the decision changed its input")
			}
			if plan.Update == nil {
				return
			}
			if plan.Update.ResourceVersion != "7" || plan.Update.UID != "u2" {
				t.Error("it is written whatever has become of it since")
			}
			if plan.Sign {
				token, err := newIssuer(t).IssueLegacy(plan.Claims)
				if err != nil {
					t.Fatal(err)
				}
				setData(plan.Update, "token", []byte(token))
			}
			in.Secret = plan.Update
			if again := Decide(in); again.Update != nil || again.Delete {
				t.Errorf("done again: %q", effect(in, again))
			}
		})
	}
}

// effect puts a plan into words.
func effect(in Input, plan Plan) string {
	var words []string
	if plan.Delete {
		words = append(words, "delete")
	}
	if plan.Sign {
		words = append(words, "sign")
	}
	if plan.Update == nil {
		return strings.Join(words, " ")
	}
	for _, key := range []string{"token", "ca.crt", "namespace", "mine"} {
		if string(plan.Update.Data[key]) != string(in.Secret.Data[key]) {
			words = append(words, key)
		}
	}
	if !reflect.DeepEqual(plan.Update.Annotations, in.Secret.Annotations) {
		words = append(words, "uid")
	}
	return strings.Join(words, " ")
}

func TestWithout(t *testing.T) {
	a := account()
	a.Secrets = []corev1.ObjectReference{{Name: "x"}, {Name: "s"}, {Name: "y"}}
	changed := without(a, "s")
	if len(changed.Secrets) != 2 || satoken.Lists(changed, "s") || !satoken.Lists(changed, "x") ||
		!satoken.Lists(changed, "y") || !satoken.Lists(a, "s") {
		t.Errorf("%v has become %v", a.Secrets, changed.Secrets)
	}
}
