package view

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"keelson.dev/cli/internal/plan"
)

const day = 24 * time.Hour

func exampleCertificates() Certificates {
	held := func(user string, left time.Duration) plan.HeldCertificate {
		return plan.HeldCertificate{User: user, Signer: "keelson-ca", NotBefore: now.Add(left - 100*day),
			NotAfter: now.Add(left)}
	}
	server := held("s", 50*day)
	server.Hosts, server.Addresses = []string{"localhost"}, []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	return Certificates{DataDir: "/d", Make: "keel init", Reports: []plan.CertificateReport{
		{CertificateFile: plan.CertificateFile{Path: "pki/gone.crt", Renewer: plan.KeelRenews},
			State: plan.CertificateMissing, Reason: "there is no such file"},
		{CertificateFile: plan.CertificateFile{Path: "pki/old.crt", Renewer: plan.KeelRenews}, Held: held("o", -day),
			State: plan.CertificateExpired, Reason: "nobody believes it\x1b[2J"},
		{CertificateFile: plan.CertificateFile{Path: "pki/s.crt", Renewer: plan.KeelRenews}, Held: server,
			State: plan.CertificateGood, RenewedFrom: now.Add(17 * day)},
		{CertificateFile: plan.CertificateFile{Path: "n/c.pem", Renewer: plan.AgentRenews}, Held: held("c", 60*day),
			State: plan.CertificateGood, RenewedFrom: now, RenewedUntil: now.Add(day)},
		{
			CertificateFile: plan.CertificateFile{Path: "pki/ca.crt", Renewer: plan.NobodyRenews},
			Held:            held("keelson-ca", 90*day),
			State:           plan.CertificateGood,
			RenewedFrom:     now.Add(80 * day),
		},
	}}
}

// Each row says all of its file, the columns stand below each other, and what needs care has its sentence.
func TestTableOfCertificates(t *testing.T) {
	var out bytes.Buffer
	exampleCertificates().WriteTable(&out, now)
	const want = `FILE STATE UNTIL LEFT RENEWAL SIGNER FOR
pki/gone.crt missing - - now: keel certs renew - -
pki/old.crt expired 2026-11-20T12:00:00Z 0 now: keel certs renew keelson-ca o
pki/s.crt good 2027-01-10T12:00:00Z 50d, 50% keel init from 2026-12-08 keelson-ca s: localhost, 127.0.0.1
n/c.pem good 2027-01-20T12:00:00Z 60d, 60% the nodeagent, 2026-11-21 to 2026-11-22 keelson-ca c
pki/ca.crt good 2027-02-19T12:00:00Z 90d, 90% keel certs rotate-ca keelson-ca keelson-ca

pki/gone.crt is missing: there is no such file
pki/old.crt is expired: nobody believes it\u001b[2J
files below /d
`
	if got := out.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got\n%s", got)
	}
	lines := strings.Split(out.String(), "\n")
	at := strings.Index(lines[0], "SIGNER")
	for _, line := range lines[2:6] {
		if !strings.HasPrefix(line[at:], "keelson-ca") {
			t.Errorf("%q is not aligned with %q", line, lines[0])
		}
	}
}

// A program reads when each ends and why one needs care.
func TestCertificatesForPrograms(t *testing.T) {
	var out bytes.Buffer
	if err := exampleCertificates().WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		DataDir      string           `json:"dataDir"`
		Certificates []map[string]any `json:"certificates"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.DataDir != "/d" || len(got.Certificates) != 5 {
		t.Fatalf("got %s, %v", out.String(), err)
	}
	if gone := got.Certificates[0]; gone["state"] != "missing" || gone["reason"] != "there is no such file" ||
		gone["notAfter"] != nil {
		t.Errorf("of one that is missing: %v", gone)
	}
	server, ca := got.Certificates[2], got.Certificates[4]
	if server["notAfter"] != "2027-01-10T12:00:00Z" || server["renewedFrom"] != "2026-12-08T12:00:00Z" ||
		server["renewedBy"] != "keel" || len(server["addresses"].([]any)) != 1 || server["reason"] != nil {
		t.Errorf("of the server: %v", server)
	}
	if ca["renewedFrom"] != nil || ca["renewedBy"] != "nobody" {
		t.Errorf("of the authority: %v", ca)
	}
}

// What needs care is counted, by how much it does.
func TestProblemOfCertificates(t *testing.T) {
	c := exampleCertificates()
	const want = "1 expired, 1 missing of 5 certificates: keel certs renew makes all but the authority anew, and " +
		"keel certs rotate-ca replaces that"
	if err := c.Problem(); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	c.Reports = c.Reports[2:]
	if err := c.Problem(); err != nil {
		t.Errorf("all are good, and it says %v", err)
	}
	c.Reports = c.Reports[1:2]
	c.Reports[0].State = plan.CertificateDue
	if err := c.Problem(); err == nil || !strings.HasPrefix(err.Error(), "1 due of 1 certificates: their agent") {
		t.Errorf("of a worker: %v", err)
	}
}
