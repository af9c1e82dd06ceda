package clustertrustbundle

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/kit/trustbundle"
	"keelson.dev/kit/trustbundle/trustbundletest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func bundleOf(name, signer, text string) *bundle {
	return &bundle{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: text}}
}

// The name of a bundle says whose it is, and no other bundle has such a name.
func TestNames(t *testing.T) {
	const signer = "example.com/web"
	text := trustbundletest.Authority(t, "one")
	const foreign = `must begin with "example.com:web:", as the names of all bundles of the signer example.com/web`
	for _, row := range []struct{ name, signer, want string }{
		{"mine", "", ""},
		{"example.com", "", ""},
		{"example.com:web:one", "", "must not contain \":\""},
		{"a:", "", "must not contain \":\""},
		{"Mine", "", "a lowercase RFC 1123 subdomain"},
		{strings.Repeat("a", 254), "", "must be no more than 253"},
		{"example.com:web:one", signer, ""},
		{"example.com:web:v1.2", signer, ""},
		{"example.com:web:" + strings.Repeat("a", 253), signer, ""},
		{"example.com:web:" + strings.Repeat("a", 254), signer, "must be no more than 253"},
		{"example.com:web:", signer, "a lowercase RFC 1123 subdomain"},
		{"example.com:web:a:b", signer, "a lowercase RFC 1123 subdomain"},
		{"example.com:web", signer, foreign},
		{"example.com:webs:one", signer, foreign},
		{"example.com/web/one", signer, foreign},
		{"mine", signer, foreign},
	} {
		var want []string
		if row.want != "" {
			want = []string{"metadata.name: Invalid value: \"" + row.name + "\": "}
		}
		errs := Validate(bundleOf(row.name, row.signer, text))
		fieldtest.Check(t, errs, want...)
		if row.want != "" && !strings.Contains(errs.ToAggregate().Error(), row.want) {
			t.Errorf("%q of %q: %v, want %q", row.name, row.signer, errs, row.want)
		}
	}
}

func TestValidate(t *testing.T) {
	one := trustbundletest.Authority(t, "one")
	padded := func(size int) string { return strings.Repeat("#", size-len(one)-1) + "\n" + one }
	for _, row := range []struct {
		name   string
		bundle *bundle
		want   []string
	}{
		{"one certificate", bundleOf("a", "", one), nil},
		{"no signer's name", bundleOf("web:a", "web", one),
			[]string{"spec.signerName: Invalid value: \"web\": must be"}},
		{"as large as can be", bundleOf("a", "", padded(trustbundle.MaxSize)), nil},
		{"larger", bundleOf("a", "", padded(trustbundle.MaxSize+1)), []string{"spec.trustBundle: Too long"}},
		{"nothing", bundleOf("a", "", ""), []string{"spec.trustBundle: Invalid value: \"<certificates>\": must hold"}},
		{"no authority and another twice", bundleOf("a", "", one+one+trustbundletest.Leaf(t, "leaf")),
			[]string{"spec.trustBundle: Invalid value: \"<certificates>\": entry 2 must be the certificate of an"}},
		{"one twice", bundleOf("a", "", one+one),
			[]string{"spec.trustBundle: Invalid value: \"<certificates>\": entry 1 is the certificate of entry 0"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.bundle), row.want...) })
	}
}

// A bundle stays its signer's. What it holds may change, and is not looked at where it does not.
func TestValidateUpdate(t *testing.T) {
	one, two := trustbundletest.Authority(t, "one"), trustbundletest.Authority(t, "two")
	const kept = "spec.signerName: Invalid value: "
	for _, row := range []struct {
		name     string
		old, now *bundle
		want     []string
	}{
		{"other certificates", bundleOf("a", "", one), bundleOf("a", "", two), nil},
		{"another signer", bundleOf("e.io:a:b", "e.io/a", one), bundleOf("e.io:a:b", "e.io/b", one),
			[]string{kept + `"e.io/b": field is immutable`}},
		{"no signer any more", bundleOf("e.io:a:b", "e.io/a", one), bundleOf("e.io:a:b", "", one), []string{kept}},
		{"a signer after all", bundleOf("a", "", one), bundleOf("a", "e.io/a", one), []string{kept}},
		{"what was never right", bundleOf("a", "", "hello"), bundleOf("a", "", "hello"), nil},
		{"what is not right", bundleOf("a", "", one), bundleOf("a", "", "hello"),
			[]string{"spec.trustBundle: Invalid value: "}},
		{"larger than can be", bundleOf("a", "", one), bundleOf("a", "", strings.Repeat("#", trustbundle.MaxSize+1)),
			[]string{"spec.trustBundle: Too long"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, ValidateUpdate(row.now, row.old), row.want...) })
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
