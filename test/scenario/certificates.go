package scenario

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// CertificateSigningRequests asks for certificates as people and nodes do: what an administrator has approved is signed
// and makes its holder known to the apiserver, what is denied or not allowed is not signed, and a node's own request is
// approved automatically.
func CertificateSigningRequests(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	key, request := certificateRequest(w, pkix.Name{CommonName: "ann", Organization: []string{"readers"}})
	ann, denied, forbidden, node := w.Namespace+"-ann", w.Namespace+"-denied", w.Namespace+"-forbidden",
		w.Namespace+"-node"
	names := []string{ann, denied, forbidden, node}
	defer func() { w.TryKubectl("", append([]string{"delete", "csr", "--ignore-not-found"}, names...)...) }()
	const client = "kubernetes.io/kube-apiserver-client"
	w.KubectlWith(asks(ann, client, request, "client auth"), "create", "-f", "-")
	w.awaitOutput([]string{client, "kubernetes-admin", "24h", "Pending"}, "get", "csr", ann)
	if got, want := w.Kubectl("certificate", "approve", ann),
		"certificatesigningrequest.certificates.k8s.io/"+ann+" approved\n"; got != want {
		t.Errorf("approve printed %q, want %q", got, want)
	}
	w.awaitOutput([]string{"Approved,Issued"}, "get", "csr", ann)
	expectSubject(w, key, ann)

	w.KubectlWith(asks(denied, client, request, "client auth"), "create", "-f", "-")
	w.Kubectl("certificate", "deny", denied)
	w.awaitOutput([]string{"Denied"}, "get", "csr", denied)
	w.KubectlWith(asks(forbidden, client, request, "server auth"), "create", "-f", "-")
	w.Kubectl("certificate", "approve", forbidden)
	w.awaitOutput([]string{"Approved,Failed"}, "get", "csr", forbidden)
	w.awaitOutput([]string{`usages: "server auth" is not allowed beside "client auth"`}, "get", "csr", forbidden, "-o",
		"jsonpath={.status.conditions[*].message}")

	user := "system:node:" + w.Namespace
	w.Kubectl("create", "clusterrolebinding", w.Namespace, "--user="+user,
		"--clusterrole=system:certificates.k8s.io:certificatesigningrequests:selfnodeclient")
	defer func() { w.TryKubectl("", "delete", "clusterrolebinding", w.Namespace) }()
	_, request = certificateRequest(w, pkix.Name{CommonName: user, Organization: []string{"system:nodes"}})
	asked := asks(node, "kubernetes.io/kube-apiserver-client-kubelet", request, "digital signature", "client auth")
	w.KubectlWith(asked, "create", "-f", "-", "--as="+user, "--as-group=system:nodes",
		"--as-group=system:authenticated")
	w.awaitOutput([]string{user, "Approved,Issued"}, "get", "csr", node)
	if certificate := w.Kubectl("get", "csr", denied, "-o", "jsonpath={.status.certificate}"); certificate != "" {
		t.Errorf("what is denied was signed: %s", certificate)
	}
}

// expectSubject uses the certificate that was issued: its holder is ann, with the rights of readers, who have none.
func expectSubject(w *World, key, name string) {
	w.Helper()
	encoded := w.Kubectl("get", "csr", name, "-o", "jsonpath={.status.certificate}")
	certificate, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		w.Fatalf("the certificate is %q: %v", encoded, err)
	}
	dir := w.directory(map[string]string{"config": "apiVersion: v1\nkind: Config\n", "tls.key": key,
		"tls.crt": string(certificate), "ca.crt": string(w.Mesh.Admin().CAData)})
	r := w.TryKubectl("", "get", "secrets", "--kubeconfig", dir+"/config", "--server", w.Mesh.Admin().Host,
		"--certificate-authority", dir+"/ca.crt", "--client-certificate", dir+"/tls.crt",
		"--client-key", dir+"/tls.key")
	if r.Code == 0 || !strings.Contains(r.Stderr, `User "ann" cannot list resource "secrets"`) {
		w.Errorf("the certificate's holder: status %d, %q, %q", r.Code, r.Stdout, r.Stderr)
	}
}

// certificateRequest makes a key, in PEM, and a request for a certificate of it, as a manifest holds it.
func certificateRequest(w *World, subject pkix.Name) (key, request string) {
	w.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.Fatalf("making a key: %v", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(made)
	if err != nil {
		w.Fatalf("encoding a key: %v", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, made)
	if err != nil {
		w.Fatalf("making a request: %v", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})),
		base64.StdEncoding.EncodeToString(text)
}

// asks is the manifest of a request for a certificate of a day.
func asks(name, signer, request string, usages ...string) string {
	return fmt.Sprintf(`apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: %s}
spec: {signerName: %s, expirationSeconds: 86400, usages: [%s], request: %s}
`, name, signer, strings.Join(usages, ", "), request)
}
