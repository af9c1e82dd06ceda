package noderestriction

import (
	"crypto/x509/pkix"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"keelson.dev/kit/certrequest/certrequesttest"
)

// A Node asks for certificates of its own.
func TestCheckRequest(t *testing.T) {
	const own = "system:node:n1"
	for _, row := range []struct{ name, signer, user, want string }{
		{"its own, as a client", certificatesv1.KubeAPIServerClientKubeletSignerName, own, ""},
		{"its own, as a server", certificatesv1.KubeletServingSignerName, own, ""},
		{"another node's, as a client", certificatesv1.KubeAPIServerClientKubeletSignerName, "system:node:n2",
			"can only create a node CSR with CN=system:node:n1"},
		{"another node's, as a server", certificatesv1.KubeletServingSignerName, "system:node:n10", "can only create"},
		{"nobody's", certificatesv1.KubeletServingSignerName, "", "can only create"},
		{"anybody's, whom somebody has to approve", certificatesv1.KubeAPIServerClientSignerName, "ann", ""},
		{"anybody's, of another signer", "example.com/clients", "ann", ""},
	} {
		asked := &certificatesv1.CertificateSigningRequest{}
		asked.Spec.SignerName = row.signer
		asked.Spec.Request = certrequesttest.For(t, pkix.Name{CommonName: row.user})
		err := checkRequest(own, asked)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
	asked := &certificatesv1.CertificateSigningRequest{}
	asked.Spec.SignerName, asked.Spec.Request = certificatesv1.KubeletServingSignerName, []byte("x")
	if err := checkRequest(own, asked); err == nil || !strings.HasPrefix(err.Error(), "spec.request: ") {
		t.Errorf("unreadable: %v", err)
	}
}
