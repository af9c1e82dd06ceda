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
	// User and Groups are whom it names, Hosts and Addresses what a serving one is valid for.
	User          string
	Groups, Hosts []string
	Addresses     []netip.Addr
	// Signer is who says that he has signed it; Vouched tells that the mesh's authority has.
	Signer  string
	Vouched bool
	// CA tells that it is an authority's.
	CA                  bool
	NotBefore, NotAfter time.Time
	// Sum tells it from all others.
	Sum string
}

// CertificateFault says why a certificate is not, or will soon be no more, what the plan asks for; empty where it is.
func CertificateFault(want Certificate, have HeldCertificate, now time.Time) string {
	lacking := slices.IndexFunc(want.Addresses, func(address netip.Addr) bool {
		return !slices.Contains(have.Addresses, address.Unmap()) // one that the machine has lost may stay
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

// whom names a user with his groups.
func whom(user string, groups []string) string {
	if len(groups) == 0 {
		return user
	}
	return user + " (" + strings.Join(groups, ", ") + ")"
}

// For is whom a certificate names and what it is valid for, in one line.
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

// Renewer is who makes a certificate anew.
type Renewer string

const (
	// KeelRenews by a later run of keel init or keel up, or by keel certs renew.
	KeelRenews Renewer = "keel"
	// AgentRenews by itself.
	AgentRenews Renewer = "nodeagent"
	// ServingAgentRenews once somebody has approved what it asks for.
	ServingAgentRenews Renewer = "nodeagent-approved"
	// NobodyRenews what everybody trusts.
	NobodyRenews Renewer = "nobody"
)

// CertificateFile is a file that holds a certificate, or is to.
type CertificateFile struct {
	// Path is its place below the data directory.
	Path    string
	Renewer Renewer
	// Want is what keel makes; nil where anything is right that is valid.
	Want *Certificate
	// CopyOf is the file that is to hold the same certificate; empty without one.
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

// WorkerCertificateFiles lists those of a worker, whose agent keeps its own.
func WorkerCertificateFiles(node string) []CertificateFile {
	return []CertificateFile{
		{Path: "pki/ca.crt", Renewer: NobodyRenews},
		WorkerClientCertificate(node),
		{Path: workerCertificates(node) + "kubelet-server-current.pem", Renewer: ServingAgentRenews},
	}
}

// WorkerClientCertificate is that by which the agent of a worker speaks to the API.
func WorkerClientCertificate(node string) CertificateFile {
	return CertificateFile{Path: workerCertificates(node) + "kubelet-client-current.pem", Renewer: AgentRenews}
}

func workerCertificates(node string) string { return "nodes/" + node + "/agent/pki/" }

// CertificateState is whether a certificate needs somebody's care.
type CertificateState string

const (
	// CertificateGood needs none.
	CertificateGood CertificateState = "good"
	// CertificateDue is to be made anew by now.
	CertificateDue CertificateState = "due"
	// CertificateExpired is believed by nobody any more.
	CertificateExpired CertificateState = "expired"
	// CertificateEarly is believed by nobody yet.
	CertificateEarly CertificateState = "not yet valid"
	// CertificateMissing is not there.
	CertificateMissing CertificateState = "missing"
	// CertificateDamaged cannot be read.
	CertificateDamaged CertificateState = "damaged"
)

// CertificateReport is what is said of a file.
type CertificateReport struct {
	CertificateFile
	// Held is what it holds; the zero value where it is missing or damaged.
	Held  HeldCertificate
	State CertificateState
	// Reason says why the state is not good.
	Reason string
	// RenewedFrom is when its renewer would first make it anew, RenewedUntil when it is overdue.
	RenewedFrom, RenewedUntil time.Time
}

// Left is how long the certificate is still valid, and how much that is of its life, in percent.
func (r CertificateReport) Left(now time.Time) (left time.Duration, percent int) {
	left = r.Held.NotAfter.Sub(now)
	if life := r.Held.NotAfter.Sub(r.Held.NotBefore); life > 0 {
		percent = int(100 * (left.Seconds() / life.Seconds()))
	}
	return left, max(0, min(100, percent))
}

// ReadCertificate is what reading a file gave.
type ReadCertificate struct {
	Held HeldCertificate
	// Missing tells that there is no file, Fault why what is there is of no use.
	Missing bool
	Fault   string
}

// ReportCertificates judges files by what they hold, in the order in which they need care: those that nobody believes,
// then those that end first. Found maps paths to what was read.
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

// renewal is when a certificate is made anew, by whom it is. The agent's client library chooses a moment between seven
// and nine tenths of a life. An authority is to outlive what it signs.
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

// NameError says that there is no certificate of a name.
type NameError struct {
	Name    string
	Allowed []string
}

// Error names those that there are.
func (e *NameError) Error() string {
	if e.Name == "ca" {
		return "NAME: the authority ca is not renewed, because everybody trusts it: keel certs rotate-ca replaces " +
			"it; give one of " + strings.Join(e.Allowed, ", ")
	}
	return fmt.Sprintf("NAME: %q is no certificate of the mesh: give one of %s", e.Name,
		strings.Join(e.Allowed, ", "))
}

// ChooseCertificates picks those of the names, all without any.
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
