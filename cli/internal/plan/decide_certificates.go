package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// HeldCertificate is the certificate that a file holds.
type HeldCertificate struct {
	// User and Groups are its subject; Hosts and Addresses are those for which a serving certificate is valid.
	User          string
	Groups, Hosts []string
	Addresses     []netip.Addr
	// Signer is the issuer that it names; Vouched is set if the mesh's authority has signed it.
	Signer  string
	Vouched bool
	// CA is set for the certificate of an authority.
	CA                  bool
	NotBefore, NotAfter time.Time
	// Sum identifies the certificate.
	Sum string
}

// CertificateFault says why a certificate does not match the plan or is due for renewal; empty if neither holds.
func CertificateFault(want Certificate, have HeldCertificate, now time.Time) string {
	lacking := slices.IndexFunc(want.Addresses, func(address netip.Addr) bool {
		return !slices.Contains(have.Addresses, address.Unmap()) // an address that the machine has lost may stay
	})
	switch {
	case !have.Vouched:
		return "the mesh's authority has not signed it"
	case have.User != want.User || !sameSet(have.Groups, want.Groups):
		return fmt.Sprintf("it names %s, not %s", whom(have.User, have.Groups), whom(want.User, want.Groups))
	case !sameSet(have.Hosts, want.Hosts):
		return fmt.Sprintf("it is for the hosts %s, not %s", strings.Join(have.Hosts, ", "),
			strings.Join(want.Hosts, ", "))
	case lacking >= 0:
		return fmt.Sprintf("it is not for %s", want.Addresses[lacking])
	case DueForRenewal(have.NotBefore, have.NotAfter, now):
		return "a third of its life or less is left"
	}
	return ""
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// whom returns the name of a user followed by the groups.
func whom(user string, groups []string) string {
	if len(groups) == 0 {
		return user
	}
	return user + " (" + strings.Join(groups, ", ") + ")"
}

// For returns the subject of a certificate and the hosts and addresses for which it is valid, in one line.
func (c HeldCertificate) For() string {
	parts := slices.Clone(c.Hosts)
	for _, address := range c.Addresses {
		parts = append(parts, address.String())
	}
	if len(parts) == 0 {
		return whom(c.User, c.Groups)
	}
	return whom(c.User, c.Groups) + ": " + strings.Join(parts, ", ")
}

// Renewer is the program that renews a certificate.
type Renewer string

const (
	// KeelRenews is for certificates that a later run of keel init or keel up renews, or keel certs renew.
	KeelRenews Renewer = "keel"
	// AgentRenews is for the certificate that the nodeagent renews.
	AgentRenews Renewer = "nodeagent"
	// ServingAgentRenews is for the certificate that the nodeagent renews once its request has been approved.
	ServingAgentRenews Renewer = "nodeagent-approved"
	// NobodyRenews is for the certificates of authorities, which everything trusts and which no program renews.
	NobodyRenews Renewer = "nobody"
)

// CertificateFile is a file that holds a certificate or should hold one.
type CertificateFile struct {
	// Path is relative to the data directory.
	Path    string
	Renewer Renewer
	// Want is the certificate that keel makes; nil if any valid certificate will do.
	Want *Certificate
	// CopyOf is the file that must hold the same certificate; empty without one.
	CopyOf string
}

// CertificateFiles lists the files of a mesh that hold certificates.
func CertificateFiles(certificates []Certificate) []CertificateFile {
	files := []CertificateFile{{Path: "pki/ca.crt", Renewer: NobodyRenews}}
	for _, certificate := range certificates {
		if certificate.Store {
			files = append(files, CertificateFile{Path: StoreAuthorityPath, Renewer: NobodyRenews})
		}
		file := CertificateFile{Path: "pki/" + certificate.File + ".crt", Renewer: KeelRenews, Want: &certificate}
		files = append(files, file)
		if certificate.HasKubeconfig() {
			files = append(files, CertificateFile{Path: "kubeconfig/" + certificate.File + ".kubeconfig",
				Renewer: KeelRenews, Want: &certificate, CopyOf: file.Path})
		}
	}
	return files
}

// WorkerCertificateFiles lists the certificate files of a worker, where the nodeagent keeps its own certificates.
func WorkerCertificateFiles(node string) []CertificateFile {
	return []CertificateFile{
		{Path: "pki/ca.crt", Renewer: NobodyRenews},
		WorkerClientCertificate(node),
		{Path: workerCertificates(node) + "kubelet-server-current.pem", Renewer: ServingAgentRenews},
	}
}

// WorkerClientCertificate is the file of the client certificate that a worker's nodeagent shows to the API server.
func WorkerClientCertificate(node string) CertificateFile {
	return CertificateFile{Path: workerCertificates(node) + "kubelet-client-current.pem", Renewer: AgentRenews}
}

func workerCertificates(node string) string { return "nodes/" + node + "/agent/pki/" }

// CertificateState says whether a certificate needs attention.
type CertificateState string

const (
	// CertificateGood needs no attention.
	CertificateGood CertificateState = "good"
	// CertificateDue should have been renewed by now.
	CertificateDue CertificateState = "due"
	// CertificateExpired is no longer valid.
	CertificateExpired CertificateState = "expired"
	// CertificateEarly is not valid yet.
	CertificateEarly CertificateState = "not yet valid"
	// CertificateMissing has no file.
	CertificateMissing CertificateState = "missing"
	// CertificateDamaged cannot be read.
	CertificateDamaged CertificateState = "damaged"
)

// CertificateReport describes the certificate in a file.
type CertificateReport struct {
	CertificateFile
	// Held is the certificate in the file; the zero value if it is missing or damaged.
	Held  HeldCertificate
	State CertificateState
	// Reason says why the state is not good.
	Reason string
	// RenewedFrom is when its renewer first tries to renew it; from RenewedUntil on it is overdue.
	RenewedFrom, RenewedUntil time.Time
}

// Left returns how long the certificate is still valid, also as a percentage of its life.
func (r CertificateReport) Left(now time.Time) (left time.Duration, percent int) {
	left = r.Held.NotAfter.Sub(now)
	if life := r.Held.NotAfter.Sub(r.Held.NotBefore); life > 0 {
		percent = int(100 * (left.Seconds() / life.Seconds()))
	}
	return left, max(0, min(100, percent))
}

// ReadCertificate is the result of reading a file.
type ReadCertificate struct {
	Held HeldCertificate
	// Missing is set if there is no file; Fault says why the content of a file cannot be used.
	Missing bool
	Fault   string
}

// ReportCertificates reports on files by their content, in the order in which they need attention: first those
// without a readable certificate, then those that expire first. Found maps paths to what was read.
func ReportCertificates(files []CertificateFile, found map[string]ReadCertificate, now time.Time) []CertificateReport {
	var reports []CertificateReport
	for _, file := range files {
		reports = append(reports, report(file, found, now))
	}
	slices.SortStableFunc(reports, func(a, b CertificateReport) int {
		return cmp.Or(a.Held.NotAfter.Compare(b.Held.NotAfter), cmp.Compare(a.Path, b.Path))
	})
	return reports
}

func report(file CertificateFile, found map[string]ReadCertificate, now time.Time) CertificateReport {
	read := found[file.Path]
	r := CertificateReport{CertificateFile: file, State: CertificateGood}
	is := func(state CertificateState, reason string) CertificateReport {
		r.State, r.Reason = state, reason
		return r
	}
	switch {
	case read.Missing && file.Renewer == ServingAgentRenews:
		return is(CertificateMissing, "somebody has to approve what the node asks for: kubectl get csr")
	case read.Missing:
		return is(CertificateMissing, "there is no such file")
	case read.Fault != "":
		return is(CertificateDamaged, read.Fault)
	}
	r.Held = read.Held
	r.RenewedFrom, r.RenewedUntil = renewal(file.Renewer, r.Held)
	if file.Want != nil {
		r.Reason = CertificateFault(*file.Want, r.Held, now)
	}
	switch {
	case now.After(r.Held.NotAfter):
		return is(CertificateExpired, "nobody believes it since "+r.Held.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(r.Held.NotBefore):
		return is(CertificateEarly, "it begins at "+r.Held.NotBefore.UTC().Format(time.RFC3339)+
			": look at this machine's clock")
	case r.Reason != "":
		return is(CertificateDue, r.Reason)
	case file.CopyOf != "" && found[file.CopyOf].Held.Sum != r.Held.Sum:
		return is(CertificateDue, "it is another certificate than that of "+file.CopyOf)
	case !now.Before(r.RenewedUntil) && file.Renewer == NobodyRenews:
		return is(CertificateDue, "what the authority signs from now on ends with it")
	case !now.Before(r.RenewedUntil):
		return is(CertificateDue, "it was to be made anew by now")
	}
	return r
}

// renewal returns when its renewer renews a certificate. The agent's client library chooses a moment between seven
// and nine tenths of its life. An authority has to outlive the certificates that it signs.
func renewal(by Renewer, held HeldCertificate) (from, until time.Time) {
	life := held.NotAfter.Sub(held.NotBefore)
	switch by {
	case KeelRenews:
		from = held.NotAfter.Add(-life / 3)
		return from, from
	case AgentRenews, ServingAgentRenews:
		return held.NotBefore.Add(life * 7 / 10), held.NotBefore.Add(life * 9 / 10)
	case NobodyRenews:
	}
	from = held.NotAfter.Add(-leafLife)
	return from, from
}

// NameError says that no certificate has the name.
type NameError struct {
	Name    string
	Allowed []string
}

// Error lists the names that exist.
func (e *NameError) Error() string {
	if e.Name == "ca" {
		return "NAME: the authority ca is not renewed, because everybody trusts it: keel certs rotate-ca replaces " +
			"it; give one of " + strings.Join(e.Allowed, ", ")
	}
	return fmt.Sprintf("NAME: %q is no certificate of the mesh: give one of %s", e.Name,
		strings.Join(e.Allowed, ", "))
}

// ChooseCertificates returns the certificates with these names, or all of them without names.
func ChooseCertificates(all []Certificate, names []string) (chosen []Certificate, err error) {
	if len(names) == 0 {
		return all, nil
	}
	var allowed []string
	for _, certificate := range all {
		allowed = append(allowed, certificate.File)
		if slices.Contains(names, certificate.File) {
			chosen = append(chosen, certificate)
		}
	}
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			return nil, &NameError{name, slices.Sorted(slices.Values(allowed))}
		}
	}
	return chosen, nil
}
