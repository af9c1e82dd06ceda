package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/terminal"
)

// Certificates is the output of `keel certs list`.
type Certificates struct {
	DataDir string
	// Make is the command that updates the mesh.
	Make    string
	Reports []plan.CertificateReport
}

// certificate is one of them for programs.
type certificate struct {
	File         string    `json:"file"`
	State        string    `json:"state"`
	Reason       string    `json:"reason,omitempty"`
	User         string    `json:"user,omitempty"`
	Groups       []string  `json:"groups,omitempty"`
	Hosts        []string  `json:"hosts,omitempty"`
	Addresses    []string  `json:"addresses,omitempty"`
	Signer       string    `json:"signer,omitempty"`
	CA           bool      `json:"ca,omitempty"`
	NotBefore    time.Time `json:"notBefore,omitzero"`
	NotAfter     time.Time `json:"notAfter,omitzero"`
	RenewedBy    string    `json:"renewedBy"`
	RenewedFrom  time.Time `json:"renewedFrom,omitzero"`
	RenewedUntil time.Time `json:"renewedUntil,omitzero"`
}

// WriteJSON prints the certificates for programs.
func (c Certificates) WriteJSON(out io.Writer) error {
	all := []certificate{}
	for _, r := range c.Reports {
		one := certificate{File: r.Path, State: string(r.State), Reason: r.Reason, User: r.Held.User,
			Groups: r.Held.Groups, Hosts: r.Held.Hosts, Signer: r.Held.Signer, CA: r.Held.CA,
			NotBefore: r.Held.NotBefore, NotAfter: r.Held.NotAfter, RenewedBy: string(r.Renewer)}
		for _, address := range r.Held.Addresses {
			one.Addresses = append(one.Addresses, address.String())
		}
		if r.Renewer != plan.NobodyRenews {
			one.RenewedFrom, one.RenewedUntil = r.RenewedFrom, r.RenewedUntil
		}
		all = append(all, one)
	}
	return writeJSON(out, map[string]any{"dataDir": c.DataDir, "certificates": all})
}

// WriteTable prints the certificates for people, and below them why some need attention.
func (c Certificates) WriteTable(out io.Writer, now time.Time) {
	table := tabwriter.NewWriter(out, 0, 4, 3, ' ', 0)
	fmt.Fprintln(table, "FILE\tSTATE\tUNTIL\tLEFT\tRENEWAL\tSIGNER\tFOR")
	for _, r := range c.Reports {
		until, left := "-", "-"
		if !r.Held.NotAfter.IsZero() {
			until = r.Held.NotAfter.UTC().Format(time.RFC3339)
			span, percent := r.Left(now)
			left = "0"
			if span > 0 {
				left = fmt.Sprintf("%s, %d%%", duration.HumanDuration(span), percent)
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Path, r.State, until, left, c.renewal(r),
			orDash(terminal.Line(r.Held.Signer)), orDash(terminal.Line(r.Held.For())))
	}
	table.Flush()
	for _, r := range c.Reports {
		if r.State != plan.CertificateGood {
			fmt.Fprintf(out, "\n%s is %s: %s", r.Path, r.State, terminal.Line(r.Reason))
		}
	}
	fmt.Fprintf(out, "\nfiles below %s\n", c.DataDir)
}

// renewal says what renews a certificate, and when.
func (c Certificates) renewal(r plan.CertificateReport) string {
	day := func(at time.Time) string { return at.UTC().Format(time.DateOnly) }
	by := map[plan.Renewer]string{plan.AgentRenews: "the nodeagent",
		plan.ServingAgentRenews: "the nodeagent, somebody approves it"}[r.Renewer]
	switch {
	case r.Renewer == plan.NobodyRenews && c.keels():
		return "keel certs rotate-ca"
	case r.Renewer == plan.NobodyRenews:
		return "none"
	case r.Renewer == plan.KeelRenews && r.State != plan.CertificateGood:
		return "now: keel certs renew"
	case r.Renewer == plan.KeelRenews:
		return c.Make + " from " + day(r.RenewedFrom)
	case r.RenewedFrom.IsZero():
		return by
	}
	return fmt.Sprintf("%s, %s to %s", by, day(r.RenewedFrom), day(r.RenewedUntil))
}

// Problem returns a one-line error if certificates need attention.
func (c Certificates) Problem() error {
	count := map[plan.CertificateState]int{}
	for _, r := range c.Reports {
		count[r.State]++
	}
	var parts []string
	for _, state := range []plan.CertificateState{plan.CertificateExpired, plan.CertificateEarly,
		plan.CertificateDamaged, plan.CertificateMissing, plan.CertificateDue} {
		if count[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[state], state))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	advice := "their agent renews them itself, and docs/reference/mesh-certificates.md says what to do where it has not"
	if c.keels() {
		advice = "keel certs renew makes all but the authority anew, and keel certs rotate-ca replaces that"
	}
	return fmt.Errorf("%s of %d certificates: %s", strings.Join(parts, ", "), len(c.Reports), advice)
}

// keels reports whether keel makes certificates on this machine, which then has the authority's key.
func (c Certificates) keels() bool {
	return slices.ContainsFunc(c.Reports, func(r plan.CertificateReport) bool { return r.Renewer == plan.KeelRenews })
}
