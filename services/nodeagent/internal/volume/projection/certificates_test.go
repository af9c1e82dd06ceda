package projection

import (
	"context"
	"encoding/pem"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/trustbundle"
	"keelson.dev/services/nodeagent/internal/volume"
)

type bundle = certificatesv1.ClusterTrustBundle

// block is a PEM block with text in place of a certificate.
func block(text string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
}

func holding(certificates ...string) *bundle {
	b := &bundle{}
	for _, text := range certificates {
		b.Spec.TrustBundle += "for people\n" + block(text)
	}
	return b
}

// contents returns the contents of the certificates in their order.
func contents(text []byte) (found []string) {
	for b := range trustbundle.Blocks(string(text)) {
		found = append(found, string(b.Bytes))
	}
	return found
}

// Each certificate is included once, and nothing else is; the order depends only on the Pod and the certificates,
// not on their distribution and order in bundles, and differs from Pod to Pod.
func TestJoin(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e"}
	orders := map[string]bool{}
	for pod := range 20 {
		uid, first := types.UID(rune('a'+pod)), ""
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			bundles := []*bundle{holding(), holding(), holding()}
			for _, i := range r.Perm(len(all)) {
				for range 1 + r.IntN(2) {
					b := bundles[r.IntN(len(bundles))]
					b.Spec.TrustBundle += holding(all[i]).Spec.TrustBundle
				}
			}
			got := string(join(uid, bundles...))
			if first == "" {
				first = got
			}
			if got != first {
				t.Fatalf("Pod %s, seed %d: another order", uid, seed)
			}
			sorted := slices.Sorted(slices.Values(contents([]byte(got))))
			if strings.Contains(got, "people") || !slices.Equal(sorted, all) {
				t.Fatalf("Pod %s, seed %d: %q", uid, seed, got)
			}
		}
		orders[first] = true
	}
	if len(orders) < 10 {
		t.Errorf("20 Pods have %d orders", len(orders))
	}
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("k")}))
	odd := &bundle{Spec: certificatesv1.ClusterTrustBundleSpec{TrustBundle: key + strings.Replace(block("a"),
		"CERTIFICATE-----\n", "CERTIFICATE-----\nHeader: x\n\n", 1)}}
	if got := string(join("u", odd)); got != block("a") {
		t.Errorf("what is no certificate, and headers, are left out: %q", got)
	}
	if got := join("u"); len(got) != 0 {
		t.Errorf("of no bundle: %q", got)
	}
}

// bundles are those of the signer e.io/s, and one by name; or an API that does not answer.
type bundles struct {
	volume.Sources
	err error
}

func (s bundles) TrustBundle(_ context.Context, name string) (*bundle, error) {
	if s.err == nil && name != "mine" {
		return nil, apierrors.NewNotFound(corev1.Resource("clustertrustbundle"), name)
	}
	return holding("m"), s.err
}

func (s bundles) TrustBundles(_ context.Context, signer string) ([]bundle, error) {
	if signer != "e.io/s" {
		return nil, s.err
	}
	live, old := holding("l", "x"), holding("o", "x")
	live.Labels, old.Labels = map[string]string{"state": "live"}, map[string]string{"state": "old"}
	return []bundle{*live, *old}, s.err
}

func TestCertificates(t *testing.T) {
	labelled := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"state": value}}
	}
	of := func(signer string, selector *metav1.LabelSelector) corev1.ClusterTrustBundleProjection {
		return corev1.ClusterTrustBundleProjection{SignerName: &signer, LabelSelector: selector}
	}
	named := func(name string) corev1.ClusterTrustBundleProjection {
		return corev1.ClusterTrustBundleProjection{Name: &name}
	}
	everything, broken := &metav1.LabelSelector{}, errors.New("no answer")
	none := "no ClusterTrustBundle of the signer e.io/s "
	for _, row := range []struct {
		name   string
		source corev1.ClusterTrustBundleProjection
		err    error
		want   string // the certificates
		wrong  string // the error if it is required; empty: none
		always bool   // an error also if it is optional
	}{
		{"by name", named("mine"), nil, "m", "", false},
		{"a name of nothing", named("none"), nil, "", `clustertrustbundle "none" not found`, false},
		{"all of a signer", of("e.io/s", everything), nil, "lox", "", false},
		{"those with a label", of("e.io/s", labelled("live")), nil, "lx", "", false},
		{"those with another", of("e.io/s", labelled("new")), nil, "", none + `has the labels "state=new"`, false},
		{"those without one", of("e.io/s", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "state", Operator: "NotIn", Values: []string{"old"}}}}), nil, "lx", "", false},
		{"no selector", of("e.io/s", nil), nil, "", none + "is selected: a labelSelector must say which", false},
		{"a signer of nothing", of("e.io/t", everything), nil, "",
			"there is no ClusterTrustBundle of the signer e.io/t", false},
		{"a selector that is none", of("e.io/s", &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}}), nil, "",
			`labelSelector: "?" is not a valid label selector operator`, true},
		{"no answer by name", named("mine"), broken, "", "no answer", true},
		{"no answer of a signer", of("e.io/s", everything), broken, "", "no answer", true},
		{"neither", corev1.ClusterTrustBundleProjection{}, nil, "",
			"clusterTrustBundle: either name or signerName must be specified", true},
	} {
		for _, optional := range []*bool{nil, ptr.To(false), ptr.To(true)} {
			source := row.source
			source.Optional = optional
			wrong := row.wrong
			if ptr.Deref(optional, false) && !row.always {
				wrong = ""
			}
			text, err := Certificates(t.Context(), bundles{err: row.err}, "u", &source)
			got := contents(text)
			slices.Sort(got)
			if strings.Join(got, "") != row.want || (err == nil) != (wrong == "") ||
				err != nil && err.Error() != wrong {
				t.Errorf("%s, optional %v: %q, %v; want %q, %q", row.name, optional, got, err, row.want, wrong)
			}
		}
	}
}
