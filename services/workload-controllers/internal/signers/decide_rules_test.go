package signers

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const (
	client  = certificatesv1.KubeAPIServerClientSignerName
	node    = certificatesv1.KubeAPIServerClientKubeletSignerName
	serving = certificatesv1.KubeletServingSignerName
)

func ecdsaKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// request is what a client would send.
func request(t *testing.T, template *x509.CertificateRequest, key crypto.Signer) *x509.CertificateRequest {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// constraints are the extension by which a request is for an authority, or is not.
func constraints(t *testing.T, value any) []pkix.Extension {
	t.Helper()
	der, err := asn1.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: der}}
}

type isCA struct{ CA bool }

type edit func(*x509.CertificateRequest)

func organizations(groups ...string) edit {
	return func(r *x509.CertificateRequest) { r.Subject.Organization = groups }
}

func named(name string) edit { return func(r *x509.CertificateRequest) { r.Subject.CommonName = name } }

func address(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 1)} }

func hosts(names ...string) edit { return func(r *x509.CertificateRequest) { r.DNSNames = names } }

func mail(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@example.com"} }

func uri(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} }

func TestCheck(t *testing.T) {
	const (
		signature, enciphers = certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment
		asClient, asServer   = certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth
	)
	type uses []certificatesv1.KeyUsage
	ofClient, ofNode, ofServer := uses{asClient}, uses{signature, enciphers, asClient}, uses{signature, enciphers,
		asServer}
	alone := "subject: the organization must be system:nodes alone, not "
	for _, row := range []struct {
		name, signer string
		edits        []edit
		usages       uses
		want         string // what the refusal says; empty: none
	}{
		{"a client", client, nil, ofClient, ""},
		{"a client with all that is allowed", client, []edit{organizations("a", "b"), hosts("a"), address, mail, uri},
			uses{signature, enciphers, asClient}, ""},
		{"a client that is a node", client, []edit{named("system:node:n1"), organizations("system:nodes")},
			ofClient, ""},
		{"a client of everything", client, []edit{organizations("a", "system:masters")}, ofClient,
			"no certificate is issued for the group system:masters"},
		{"a client that serves", client, nil, uses{asClient, asServer},
			`usages: "server auth" is not allowed beside "client auth"`},
		{"a client that signs", client, nil, uses{asClient, certificatesv1.UsageCertSign}, `usages: "cert sign"`},
		{"a client for anything", client, nil, uses{asClient, certificatesv1.UsageAny}, `usages: "any" is not allowed`},
		{"no client", client, nil, uses{signature}, `usages: must include "client auth"`},
		{"no use", client, nil, nil, `usages: must include "client auth"`},

		{"a node", node, nil, ofNode, ""},
		{"a node whose key enciphers nothing", node, nil, uses{asClient, signature}, ""},
		{"a node that does not sign", node, nil, uses{asClient, enciphers}, `usages: must include "digital signature"`},
		{"a node that is no client", node, nil, uses{signature, enciphers}, `usages: must include "client auth"`},
		{"a node that serves", node, nil, ofServer, `usages: "server auth" is not allowed beside "client auth"`},
		{"a node that does both", node, nil, append(ofNode, asServer), `usages: "server auth" is not allowed`},
		{"a node of no group", node, []edit{organizations()}, ofNode, alone + "[]"},
		{"a node of another group", node, []edit{organizations("nodes")}, ofNode, alone},
		{"a node of another group too", node, []edit{organizations("system:nodes", "a")}, ofNode, alone},
		{"a node of the group twice", node, []edit{organizations("system:nodes", "system:nodes")}, ofNode, alone},
		{"a node of everything", node, []edit{organizations("system:nodes", "system:masters")}, ofNode,
			"no certificate is issued for the group system:masters"},
		{"no node", node, []edit{named("ann")}, ofNode,
			"subject: the common name must be system:node:NAME, not \"ann\""},
		{"a node with no name", node, []edit{named("system:node:")}, ofNode, "subject: the common name must be"},
		{"a node by another name", node, []edit{named("xsystem:node:n1")}, ofNode, "subject: the common name must be"},
		{"a node at a host", node, []edit{hosts("n1")}, ofNode, "subjectAltName: DNS names and IP addresses"},
		{"a node at an address", node, []edit{address}, ofNode, "subjectAltName: DNS names and IP addresses"},
		{"a node with mail", node, []edit{mail}, ofNode, "subjectAltName: email addresses and URIs are not allowed"},
		{"a node with a URI", node, []edit{uri}, ofNode, "subjectAltName: email addresses and URIs are not allowed"},

		{"a node's server at a host", serving, []edit{hosts("n1")}, ofServer, ""},
		{"a node's server at an address", serving, []edit{address}, uses{asServer, signature}, ""},
		{"a node's server nowhere", serving, nil, ofServer, "subjectAltName: at least one DNS name or IP address"},
		{"a node's server that is a client", serving, []edit{address}, ofNode,
			`usages: "client auth" is not allowed beside "server auth"`},
		{"a server of no node", serving, []edit{address, named("ann")}, ofServer, "subject: the common name must be"},
		{"a server of a group", serving, []edit{address, organizations("a")}, ofServer, alone},
		{"a node's server with mail", serving, []edit{address, mail}, ofServer, "subjectAltName: email addresses"},
		{"a node's server with a URI", serving, []edit{address, uri}, ofServer, "subjectAltName: email addresses"},

		{"an authority", client, []edit{func(r *x509.CertificateRequest) {
			r.ExtraExtensions = constraints(t, isCA{true})
		}}, ofClient, "no certificate of an authority is issued"},
		{"an authority that is a node", node, []edit{func(r *x509.CertificateRequest) {
			r.ExtraExtensions = constraints(t, isCA{true})
		}}, ofNode, "no certificate of an authority is issued"},
		{"an authority of some depth", serving, []edit{address, func(r *x509.CertificateRequest) {
			r.ExtraExtensions = constraints(t, struct {
				CA    bool
				Depth int
			}{true, 0})
		}}, ofServer, "no certificate of an authority is issued"},
		{"something that may be one", client, []edit{func(r *x509.CertificateRequest) {
			r.ExtraExtensions = constraints(t, "CA")
		}}, ofClient, "no certificate of an authority is issued"},
		{"none", client, []edit{func(r *x509.CertificateRequest) {
			r.ExtraExtensions = constraints(t, struct{}{})
		}}, ofClient, ""},
		{"of a signer of somebody else", "example.com/clients", nil, ofClient, `"example.com/clients" is no signer`},
		{"of the signer of earlier versions", "kubernetes.io/legacy-unknown", nil, ofClient, "is no signer"},
	} {
		t.Run(row.name, func(t *testing.T) {
			template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:n1",
				Organization: []string{"system:nodes"}}}
			if row.signer == client {
				template.Subject = pkix.Name{CommonName: "ann"}
			}
			for _, edit := range row.edits {
				edit(template)
			}
			err := Check(row.signer, request(t, template, ecdsaKey(t, elliptic.P256())), row.usages)
			if row.want == "" && err != nil ||
				row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// A key that is easily guessed is worth no certificate.
func TestCheckKey(t *testing.T) {
	rsaKey := func(bits int) crypto.Signer {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	_, young, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		key  crypto.Signer
		want string
	}{
		{"RSA", rsaKey(2048), ""},
		{"a bit less of RSA", rsaKey(2047), "an RSA key must have at least 2048 bits, not 2047"},
		{"P-224", ecdsaKey(t, elliptic.P224()), "an ECDSA key must be of the curve P-256, P-384 or P-521, not P-224"},
		{"P-256", ecdsaKey(t, elliptic.P256()), ""},
		{"P-384", ecdsaKey(t, elliptic.P384()), ""},
		{"P-521", ecdsaKey(t, elliptic.P521()), ""},
		{"Ed25519", young, ""},
	} {
		asked := request(t, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "ann"}}, row.key)
		err := Check(client, asked, []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth})
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
	if err := Check(client, &x509.CertificateRequest{}, nil); err == nil || !strings.HasPrefix(err.Error(),
		"a key must be of RSA, ECDSA or Ed25519") {
		t.Errorf("no key: %v", err)
	}
}
