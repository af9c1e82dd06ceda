package nodecertificates

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"k8s.io/client-go/util/certificate"
)

// A certificate is superseded only if an authority of the bundle other than the first has signed it.
func TestSuperseded(t *testing.T) {
	before, next, other := newAuthority(t), newAuthority(t), newAuthority(t)
	pair, err := tls.X509KeyPair(before.sign(t, lasting()))
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		bundle []*x509.Certificate
		want   bool
	}{
		"of the only one":             {bundleOf(before), false},
		"of the one that signs":       {bundleOf(before, next), false},
		"of the one before":           {bundleOf(next, before), true},
		"of the third":                {bundleOf(next, other, before), true},
		"of nobody there":             {bundleOf(next, other), false},
		"no bundle":                   {nil, false},
		"of an authority named twice": {bundleOf(before, before), false},
	} {
		if got := superseded(pair.Leaf, row.bundle); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A superseded pair is the node's until another one arrives, and the file is left unchanged meanwhile.
func TestRenewing(t *testing.T) {
	before, next := newAuthority(t), newAuthority(t)
	pairs := openTest(t, t.TempDir())
	if config, err := pairs.renewing(pairs, bundleOf(next, before)); err != nil || config.CertificateStore != pairs {
		t.Errorf("without a pair: %+v, %v", config, err)
	}
	if _, err := pairs.Update(before.sign(t, lastingFrom(time.Now()))); err != nil {
		t.Fatal(err)
	}
	if config, err := pairs.renewing(pairs, bundleOf(before, next)); err != nil || config.CertificateStore != pairs {
		t.Errorf("before the switch: %+v, %v", config, err)
	}
	held, err := pairs.read()
	if err != nil {
		t.Fatal(err)
	}
	config, err := pairs.renewing(pairs, bundleOf(next, before))
	if err != nil {
		t.Fatal(err)
	}
	config.GetUsages = certificate.DefaultKubeletClientGetUsages
	manager, err := certificate.NewManager(config)
	if err != nil {
		t.Fatal(err)
	}
	if current := manager.Current(); current == nil || current.Leaf.CheckSignatureFrom(before.certificate) != nil {
		t.Errorf("the node has %+v meanwhile", current)
	}
	if after, err := pairs.read(); err != nil || string(after) != string(held) {
		t.Errorf("the file holds %q, %v", after, err)
	}
	if _, err := config.CertificateStore.Update(next.sign(t, lastingFrom(time.Now()))); err != nil {
		t.Fatal(err)
	}
	if current, err := pairs.Current(); err != nil || current.Leaf.CheckSignatureFrom(next.certificate) != nil {
		t.Errorf("the file holds %+v, %v", current, err)
	}
}
