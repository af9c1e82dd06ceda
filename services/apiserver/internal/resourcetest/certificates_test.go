package resourcetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/kit/certrequest/certrequesttest"
	"keelson.dev/services/apiserver/internal/servertest"
)

// certificateFor is a request to the signer for a client certificate of this name and these groups.
func certificateFor(t *testing.T, name, signer string, subject pkix.Name) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: signer,
			Request: certrequesttest.For(t, subject),
			Usages:  []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}}}
}

// selfSigned is some certificate.
func selfSigned(t *testing.T) []byte {
	t.Helper()
	key := must[*ecdsa.PrivateKey](t, "making a key")(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	der := must[[]byte](t, "signing")(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func allows(verbs []string, resources []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{certificatesv1.GroupName}, Verbs: verbs, Resources: resources,
		ResourceNames: names}
}

// Who asks, who approves and who signs are three, and each does no other's work.
func testCertificates(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	const signer, resource = "example.com/clients", "certificatesigningrequests"
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"asker": {allows([]string{"create", "get", "update"}, []string{resource})},
		"approver": {allows([]string{"get", "update", "patch"}, []string{resource, resource + "/approval"}),
			allows([]string{"approve"}, []string{"signers"}, "example.com/*")},
		"clerk": {allows([]string{"update"}, []string{resource + "/approval", resource + "/status"})},
		"signer": {allows([]string{"get", "update"}, []string{resource, resource + "/status", resource + "/approval"}),
			allows([]string{"sign"}, []string{"signers"}, signer)},
	} {
		grant(t, s, "csr-"+name, rules...)
	}
	asker := impersonate(t, s, "csr-asker", "askers", "system:authenticated")
	asked := certificateFor(t, "asked", signer, pkix.Name{CommonName: "ann"})
	asked.Spec.Username, asked.Spec.Groups = "root", []string{"system:masters"}
	asked.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: "Approved", Status: "True"}}
	made := must[*certificatesv1.CertificateSigningRequest](t, "asking")(
		asker.CertificatesV1().CertificateSigningRequests().Create(ctx, asked, metav1.CreateOptions{}))
	requests := s.Client.CertificatesV1().CertificateSigningRequests()
	if made.Spec.Username != "csr-asker" || slices.Contains(made.Spec.Groups, "system:masters") ||
		!slices.Contains(made.Spec.Groups, "askers") || len(made.Status.Conditions) > 0 || made.Generation != 0 {
		t.Errorf("a request is %+v, %+v", made.Spec, made.Status)
	}
	testRequestStays(t, asker, made)
	testVerdict(t, s, made)
	testIssue(t, s)
	list := must[*certificatesv1.CertificateSigningRequestList](t, "listing by signer")(requests.List(ctx,
		metav1.ListOptions{FieldSelector: "spec.signerName=" + signer}))
	others := must[*certificatesv1.CertificateSigningRequestList](t, "listing by another signer")(requests.List(ctx,
		metav1.ListOptions{FieldSelector: "spec.signerName=example.com/others"}))
	if len(list.Items) != 1 || len(others.Items) != 0 {
		t.Errorf("of the signer there are %d, of another one %d", len(list.Items), len(others.Items))
	}
	testForbiddenRequests(t, s)
}

// testRequestStays: what is asked for does not change, and who may write it neither approves nor signs.
func testRequestStays(t *testing.T, asker kubernetes.Interface, made *certificatesv1.CertificateSigningRequest) {
	changed := made.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	changed.Spec = certificateFor(t, "", "kubernetes.io/kube-apiserver-client", pkix.Name{CommonName: "eve"}).Spec
	changed.Status.Certificate = selfSigned(t)
	changed.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: "Approved", Status: "True"}}
	updated := must[*certificatesv1.CertificateSigningRequest](t, "updating")(
		asker.CertificatesV1().CertificateSigningRequests().Update(t.Context(), changed, metav1.UpdateOptions{}))
	if updated.Labels["a"] != "b" || updated.Spec.SignerName != made.Spec.SignerName ||
		string(updated.Spec.Request) != string(made.Spec.Request) || updated.Spec.Username != "csr-asker" ||
		len(updated.Status.Certificate)+len(updated.Status.Conditions) > 0 {
		t.Errorf("an update makes it %+v, %+v", updated.Spec, updated.Status)
	}
	_, err := asker.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), made.Name, changed,
		metav1.UpdateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("who asks approves: %v", err)
	}
}

// testVerdict: approving needs the right to the signer beside that to the subresource.
func testVerdict(t *testing.T, s *servertest.Server, made *certificatesv1.CertificateSigningRequest) {
	ctx := t.Context()
	approve := func(by string) (*certificatesv1.CertificateSigningRequest, error) {
		client := impersonate(t, s, by, "system:authenticated").CertificatesV1().CertificateSigningRequests()
		now := must[*certificatesv1.CertificateSigningRequest](t, "reading")(
			s.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, made.Name, metav1.GetOptions{}))
		now.Status.Certificate = selfSigned(t)
		now.Status.Conditions = append(now.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: "Approved", Status: "True", Reason: "Test"})
		return client.UpdateApproval(ctx, made.Name, now, metav1.UpdateOptions{})
	}
	for _, who := range []string{"csr-clerk", "csr-signer"} {
		if _, err := approve(who); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
			`user not permitted to approve requests with signerName "example.com/clients"`) {
			t.Errorf("%s approves: %v", who, err)
		}
	}
	approved := must[*certificatesv1.CertificateSigningRequest](t, "approving")(approve("csr-approver"))
	if len(approved.Status.Certificate) > 0 || len(approved.Status.Conditions) != 1 ||
		approved.Status.Conditions[0].LastUpdateTime.IsZero() ||
		approved.Status.Conditions[0].LastTransitionTime.IsZero() {
		t.Errorf("approving makes it %+v", approved.Status)
	}
	if _, err := approve("csr-approver"); !apierrors.IsInvalid(err) {
		t.Errorf("approving twice: %v", err)
	}
	denied := approved.DeepCopy()
	denied.Status.Conditions[0].Type = "Denied"
	_, err := s.Client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, made.Name, denied,
		metav1.UpdateOptions{})
	refusedAt(t, err, "status.conditions")
}

// testIssue: issuing needs the right to the signer beside that to the subresource, and happens once.
func testIssue(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	all := s.Client.CertificatesV1().CertificateSigningRequests()
	issue := func(by string, certificate []byte) (*certificatesv1.CertificateSigningRequest, error) {
		now := must[*certificatesv1.CertificateSigningRequest](t, "reading")(all.Get(ctx, "asked", metav1.GetOptions{}))
		now.Status.Certificate, now.Status.Conditions = certificate, nil
		return impersonate(t, s, by, "system:authenticated").CertificatesV1().CertificateSigningRequests().UpdateStatus(
			ctx, now, metav1.UpdateOptions{})
	}
	if _, err := issue("csr-clerk", selfSigned(t)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
		`user not permitted to sign requests with signerName "example.com/clients"`) {
		t.Errorf("the clerk issues: %v", err)
	}
	if _, err := issue("csr-approver", selfSigned(t)); !apierrors.IsForbidden(err) {
		t.Errorf("who approves issues: %v", err)
	}
	_, err := issue("csr-signer", []byte("hello"))
	refusedAt(t, err, "status.certificate")
	issued := must[*certificatesv1.CertificateSigningRequest](t, "issuing")(issue("csr-signer", selfSigned(t)))
	if len(issued.Status.Certificate) == 0 || len(issued.Status.Conditions) != 1 {
		t.Errorf("issued: %+v", issued.Status)
	}
	_, err = issue("csr-signer", selfSigned(t))
	refusedAt(t, err, "status.certificate")
	patch := []byte(`{"status":{"conditions":[{"type":"Failed","status":"True","reason":"x"}]}}`)
	failed := must[*certificatesv1.CertificateSigningRequest](t, "failing by a patch")(all.Patch(ctx, "asked",
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"))
	if len(failed.Status.Conditions) != 2 || failed.Status.Conditions[0].Type != "Approved" {
		t.Errorf("failed: %+v", failed.Status.Conditions)
	}
}

// testForbiddenRequests: no certificate makes its holder a master, and a node gets none of another node.
func testForbiddenRequests(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	create := func(client kubernetes.Interface, signer string, subject pkix.Name) error {
		_, err := client.CertificatesV1().CertificateSigningRequests().Create(
			ctx,
			certificateFor(t, "dry", signer, subject),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}},
		)
		return err
	}
	node := impersonate(t, s, "system:node:n1", "system:nodes", "system:authenticated")
	own := pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}}
	other := pkix.Name{CommonName: "system:node:n2", Organization: []string{"system:nodes"}}
	masters := pkix.Name{CommonName: "eve", Organization: []string{"system:masters"}}
	for _, row := range []struct {
		name, signer string
		by           kubernetes.Interface
		subject      pkix.Name
		want         string
	}{
		{"everything", "kubernetes.io/kube-apiserver-client", s.Client, masters, "system:masters group is not allowed"},
		{"everything, of another signer", "example.com/clients", s.Client, masters, ""},
		{"a node's own", "kubernetes.io/kubelet-serving", node, own, ""},
		{"another node's", "kubernetes.io/kubelet-serving", node, other,
			"can only create a node CSR with CN=system:node:n1"},
	} {
		err := create(row.by, row.signer, row.subject)
		if row.want == "" && err != nil || row.want != "" && (!apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}
