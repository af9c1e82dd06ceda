package imagepull

import (
	"fmt"
	"strings"
	"testing"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

func secret(uid, hash string) kubeletv1beta1.ImagePullSecret {
	return kubeletv1beta1.ImagePullSecret{UID: uid, Namespace: "ns", Name: "s", CredentialHash: hash}
}

// TestVerifies checks which images on the node need credentials. (imagePullCredentialsVerificationPolicy and
// preloadedImagesVerificationAllowlist, KubeletConfiguration v1beta1.)
func TestVerifies(t *testing.T) {
	const listed, other, allowlist = "reg.io/team/app", "reg.io/team2/app", "NeverVerifyAllowlistedImages"
	for _, row := range []struct {
		policy, name string
		pulledHere   bool
		want         bool
	}{
		{"", listed, false, false},
		{"", listed, true, true},
		{"NeverVerifyPreloadedImages", other, false, false},
		{"NeverVerifyPreloadedImages", other, true, true},
		{"NeverVerify", other, true, false},
		{"AlwaysVerify", listed, false, true},
		{allowlist, listed, false, false},
		{allowlist, listed, true, true},
		{allowlist, other, false, true},
		{allowlist, "docker.io/library/busybox", false, false},
		{allowlist, "docker.io/library/busybox2", false, true},
		{allowlist, "docker.io/me/x", false, false},
		{allowlist, "docker.io/me/x/y", false, false},
		{allowlist, "docker.io/men/x", false, true},
	} {
		s := Settings{Policy: row.policy, Allowlist: []string{"reg.io/team/*", "busybox", "me/*"}}
		if got := s.verifies(row.name, row.pulledHere); got != row.want {
			t.Errorf("%s, %s, pulled here %v: %v, want %v", row.policy, row.name, row.pulledHere, got, row.want)
		}
	}
}

func TestAllowlistIsChecked(t *testing.T) {
	const name, tag = "must be the name of an image, or its beginning up to /*", "must have neither tag nor digest"
	for entry, want := range map[string]string{
		"busybox": "", "reg.io:5000/a/b": "", "reg.io/*": "", "localhost:5000/*": "",
		"": name, "*": name, "/*": name, "a*": name, "a/*/b": name, "a/b*": name, " a": name, "a/B/*": name,
		"a:1": tag, "reg.io:5000/a:1": tag, "a@sha256:" + strings.Repeat("0", 64): tag,
	} {
		s := Settings{Policy: "NeverVerifyAllowlistedImages", Allowlist: []string{entry}}
		if want != "" {
			want = fmt.Sprintf("--preloaded-images-verification-allowlist: %q %s", entry, want)
		}
		if got := s.Validate(); want == "" && got != nil || want != "" && (got == nil || got.Error() != want) {
			t.Errorf("%q: %v, want %q", entry, got, want)
		}
	}
	for want, s := range map[string]Settings{
		`--image-pull-credentials-verification-policy: "neververify" must be one of [NeverVerifyPreloadedImages ` +
			`NeverVerify NeverVerifyAllowlistedImages AlwaysVerify]`: {Policy: "neververify"},
		`--preloaded-images-verification-allowlist: must be empty unless --image-pull-credentials-verification-policy ` +
			`is NeverVerifyAllowlistedImages`: {Allowlist: []string{"a"}},
	} {
		if got := s.Validate(); got == nil || got.Error() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// A secret opens an image by its content, or by being the one that opened it before, even with changed content.
func TestOpens(t *testing.T) {
	known := kubeletv1beta1.ImagePullCredentials{KubernetesSecrets: []kubeletv1beta1.ImagePullSecret{secret("1", "a"),
		secret("2", "")}}
	for _, row := range []struct {
		secrets []kubeletv1beta1.ImagePullSecret
		want    string
	}{
		{nil, ""},
		{[]kubeletv1beta1.ImagePullSecret{secret("9", "a")}, "9"},
		{[]kubeletv1beta1.ImagePullSecret{secret("1", "z")}, "1"},
		{[]kubeletv1beta1.ImagePullSecret{secret("9", "z")}, ""},
		{[]kubeletv1beta1.ImagePullSecret{secret("9", "")}, ""},
		{[]kubeletv1beta1.ImagePullSecret{{UID: "1", Namespace: "other", Name: "s", CredentialHash: "z"}}, ""},
		{[]kubeletv1beta1.ImagePullSecret{{UID: "1", Namespace: "ns", Name: "other", CredentialHash: "z"}}, ""},
		{[]kubeletv1beta1.ImagePullSecret{secret("9", "z"), secret("8", "a")}, "8"},
	} {
		if got, ok := opens(known, row.secrets); got.UID != row.want || ok != (row.want != "") {
			t.Errorf("%v: %v, %v; want %q", row.secrets, got, ok, row.want)
		}
	}
}

// A pull without credentials opens an image for good; a secret with changed content is listed once; the newest
// hundred are kept.
func TestWith(t *testing.T) {
	type known = kubeletv1beta1.ImagePullCredentials
	by := func(s kubeletv1beta1.ImagePullSecret) Credentials { return Credentials{Secret: &s} }
	one := with(known{}, by(secret("1", "a")))
	if got := with(one, Credentials{}); !got.NodePodsAccessible || len(got.KubernetesSecrets) != 0 {
		t.Errorf("after a pull without credentials: %+v", got)
	}
	if got := with(known{NodePodsAccessible: true}, by(secret("1", "a"))); !got.NodePodsAccessible {
		t.Errorf("open to all, and then pulled with credentials: %+v", got)
	}
	if got := with(one, by(secret("1", "b"))); len(got.KubernetesSecrets) != 1 ||
		got.KubernetesSecrets[0].CredentialHash != "b" || one.KubernetesSecrets[0].CredentialHash != "a" {
		t.Errorf("after a change of the secret: %+v, and the old ones %+v", got, one)
	}
	account := func(uid string) Credentials {
		return Credentials{Account: &kubeletv1beta1.ImagePullServiceAccount{UID: uid}}
	}
	mixed := with(with(with(one, account("1")), account("2")), account("1"))
	if len(mixed.KubernetesSecrets) != 1 || len(mixed.KubernetesServiceAccounts) != 2 ||
		mixed.KubernetesServiceAccounts[1].UID != "1" || mixed.NodePodsAccessible {
		t.Errorf("after pulls with two accounts: %+v", mixed)
	}
	many := known{}
	for i := range 101 {
		many = with(many, by(secret(fmt.Sprint(i), "x")))
	}
	if n := len(many.KubernetesSecrets); n != 100 || many.KubernetesSecrets[0].UID != "1" ||
		many.KubernetesSecrets[99].UID != "100" {
		t.Errorf("of 101 secrets %d are kept: %+v", n, many.KubernetesSecrets)
	}
}
