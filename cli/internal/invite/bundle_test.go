package invite

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/plan"
)

// bundleOf is one that lasts for an hour.
func bundleOf(now time.Time) Bundle {
	b := Bundle{Expires: now.Add(time.Hour), Files: map[string][]byte{}, Stores: []string{"https://192.0.2.1:2380"}}
	for _, name := range plan.SharedFiles() {
		b.Files[name] = []byte("the content of " + name)
	}
	return b
}

// A bundle is opened by its key alone, for its token, in its time, and says nothing to anybody else.
func TestSeal(t *testing.T) {
	now := time.Date(2026, 11, 27, 20, 0, 0, 0, time.UTC)
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := Seal(bundleOf(now), key, "abcdef")
	if err != nil || bytes.Contains(sealed, []byte("the content")) {
		t.Fatalf("%v: %q", err, sealed)
	}
	other := key
	other[31] ^= 1
	broken := bytes.Clone(sealed)
	broken[len(broken)-1] ^= 1
	lacking := bundleOf(now)
	delete(lacking.Files, "ca.key")
	less, _ := Seal(lacking, key, "abcdef")
	alone := bundleOf(now)
	alone.Stores = nil
	without, _ := Seal(alone, key, "abcdef")
	for name, row := range map[string]struct {
		sealed []byte
		key    Key
		token  string
		at     time.Time
		says   string
	}{
		"the key":             {sealed, key, "abcdef", now, ""},
		"just before its end": {sealed, key, "abcdef", now.Add(time.Hour - 1), ""},
		"at its end":          {sealed, key, "abcdef", now.Add(time.Hour), "has expired at 2026-11-27T21:00:00Z"},
		"another key":         {sealed, other, "abcdef", now, "--certificate-key: it is not the one"},
		"another token":       {sealed, key, "abcdeg", now, "--certificate-key: it is not the one"},
		"changed":             {broken, key, "abcdef", now, "--certificate-key: it is not the one"},
		"nothing":             {nil, key, "abcdef", now, "--certificate-key: it is not the one"},
		"cut off":             {sealed[:11], key, "abcdef", now, "--certificate-key: it is not the one"},
		"without a key":       {less, key, "abcdef", now, "lacks ca.key"},
		"without the store":   {without, key, "abcdef", now, "says nothing of the store"},
	} {
		got, err := Unseal(row.sealed, row.key, row.token, row.at)
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && string(got.Files["ca.key"]) != "the content of ca.key" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestParseKey(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseKey(key.String()); err != nil || got != key {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", key.String()[1:], key.String() + "0", strings.Repeat("g", 64),
		strings.Repeat("A", 64)} {
		if _, err := ParseKey(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCheckControlPlaneLife(t *testing.T) {
	for life, good := range map[time.Duration]bool{0: false, time.Second - 1: false, time.Second: true,
		2 * time.Hour: true, 2*time.Hour + 1: false, -time.Hour: false} {
		if err := CheckControlPlaneLife(life); (err == nil) != good {
			t.Errorf("%v: %v", life, err)
		}
	}
}

// An offered bundle belongs to one token, which can read only it, and is deleted with the token.
func TestOffer(t *testing.T) {
	client := fake.NewClientset()
	token, key, err := Offer(t.Context(), client, bundleOf(time.Now()), time.Hour, "")
	if err != nil {
		t.Fatal(err)
	}
	secret, role, binding := bundleObjects(token.ID, nil, "u")
	for _, owners := range [][]string{{secret.Name, secret.OwnerReferences[0].Name},
		{role.Name, role.OwnerReferences[0].Name}, {binding.Name, binding.OwnerReferences[0].Name}} {
		if owners[1] != "bootstrap-token-"+token.ID {
			t.Errorf("%s is owned by %s", owners[0], owners[1])
		}
	}
	if rule := role.Rules[0]; len(role.Rules) != 1 || len(rule.ResourceNames) != 1 ||
		rule.ResourceNames[0] != secret.Name || len(rule.Verbs) != 1 || rule.Verbs[0] != "get" {
		t.Errorf("the token may %+v", role.Rules)
	}
	if len(binding.Subjects) != 1 || binding.Subjects[0].Name != "system:bootstrap:"+token.ID {
		t.Errorf("who may is %+v", binding.Subjects)
	}
	kept, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), secret.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Unseal(kept.Data[discovery.BundleKey], key, token.ID, time.Now()); err != nil {
		t.Error(err)
	}
	for range 2 { // it may have been cut off
		if err := Spend(t.Context(), client, token.ID); err != nil {
			t.Error(err)
		}
	}
	if left, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); err != nil ||
		len(left.Items) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
