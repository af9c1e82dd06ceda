package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	certificateBegin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	certificateEnd   = certificateBegin.Add(90 * 24 * time.Hour)
)

func heldServer() HeldCertificate {
	return HeldCertificate{
		User:      "u",
		Groups:    []string{"a", "b"},
		Hosts:     []string{"h", "i"},
		Signer:    "ca",
		Vouched:   true,
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")},
		NotBefore: certificateBegin,
		NotAfter:  certificateEnd,
		Sum:       "s",
	}
}

// A certificate that matches the plan is kept; each kind of difference has its own message.
func TestCertificateFault(t *testing.T) {
	want := Certificate{File: "f", User: "u", Groups: []string{"b", "a"}, Hosts: []string{"i", "h", "h"},
		Addresses: []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.1")}}
	same := func(*HeldCertificate) {}
	const third = 60 * 24 * time.Hour
	for name, row := range map[string]struct {
		change func(*HeldCertificate)
		at     time.Duration
		want   string
	}{
		"as it is to be": {same, 0, ""},
		"another's":      {func(c *HeldCertificate) { c.User = "v" }, 0, "it names v (a, b), not u (b, a)"},
		"no groups":      {func(c *HeldCertificate) { c.Groups = nil }, 0, "it names u, not u (b, a)"},
		"one group too many": {func(c *HeldCertificate) { c.Groups = append(c.Groups, "c") }, 0,
			"it names u (a, b, c), not u (b, a)"},
		"other hosts": {func(c *HeldCertificate) { c.Hosts = []string{"h"} }, 0, "it is for the hosts h, not i, h"},
		"a new address": {func(c *HeldCertificate) { c.Addresses = c.Addresses[1:] }, 0,
			"it is not for ::ffff:192.0.2.1"},
		"another authority's": {func(c *HeldCertificate) { c.Vouched = false }, 0,
			"the mesh's authority has not signed it"},
		"a little more than a third is left": {same, third - 1, ""},
		"a third is left":                    {same, third, "a third of its life or less"},
		"not yet":                            {same, -1, "a third of its life or less"},
	} {
		have := heldServer()
		row.change(&have)
		got := CertificateFault(want, have, certificateBegin.Add(row.at))
		if (got == "") != (row.want == "") || !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// Each kind of file is judged by the time at which its renewer should act, just before and at each bound.
func TestReportCertificates(t *testing.T) {
	const day = 24 * time.Hour
	want := &Certificate{File: "f", User: "u", Groups: []string{"a", "b"}, Hosts: []string{"h", "i"}}
	ca := heldServer()
	ca.NotAfter = certificateBegin.Add(leafLife + 90*day)
	good := ReadCertificate{Held: heldServer()}
	byKeel, byAgent := CertificateFile{Renewer: KeelRenews, Want: want}, CertificateFile{Renewer: AgentRenews}
	approved, authority := CertificateFile{Renewer: ServingAgentRenews}, CertificateFile{Renewer: NobodyRenews}
	copyOf := func(path string) CertificateFile {
		return CertificateFile{Renewer: KeelRenews, Want: want, CopyOf: path}
	}
	missing := ReadCertificate{Missing: true}
	for name, row := range map[string]struct {
		file CertificateFile
		read ReadCertificate
		at   time.Duration
		want CertificateState
		says string
	}{
		"good":    {byKeel, good, 60*day - 1, CertificateGood, ""},
		"due":     {byKeel, good, 60 * day, CertificateDue, "a third of its life"},
		"at end":  {byKeel, good, 90 * day, CertificateDue, "a third of its life"},
		"expired": {byKeel, good, 90*day + 1, CertificateExpired, "nobody believes it since 2026-04-01T00:00:00Z"},
		"early":   {byKeel, good, -1, CertificateEarly, "it begins at 2026-01-01T00:00:00Z"},
		"missing": {byKeel, missing, 0, CertificateMissing, "there is no such file"},
		"damaged": {byKeel, ReadCertificate{Fault: "no PEM"}, 0, CertificateDamaged, "no PEM"},
		"a copy":  {copyOf("same"), good, 0, CertificateGood, ""},
		"a copy of another": {copyOf("other"), good, 0, CertificateDue,
			"it is another certificate than that of other"},
		"of the agent":      {byAgent, good, 81*day - 1, CertificateGood, ""},
		"the agent is late": {byAgent, good, 81 * day, CertificateDue, "it was to be made anew by now"},
		"to be approved":    {approved, missing, 0, CertificateMissing, "somebody has to approve"},
		"the authority":     {authority, ReadCertificate{Held: ca}, 90*day - 1, CertificateGood, ""},
		"an old authority":  {authority, ReadCertificate{Held: ca}, 90 * day, CertificateDue, "what the authority"},
	} {
		row.file.Path = "p"
		found := map[string]ReadCertificate{"p": row.read, "same": good, "other": {Held: HeldCertificate{Sum: "t"}}}
		got := ReportCertificates([]CertificateFile{row.file}, found, certificateBegin.Add(row.at))[0]
		if got.State != row.want || (got.Reason == "") != (row.says == "") || !strings.HasPrefix(got.Reason, row.says) {
			t.Errorf("%s: %s, %q; want %s, %q", name, got.State, got.Reason, row.want, row.says)
		}
	}
}

// Unreadable files come first, then the certificates that expire first, then the order of names.
func TestTheOrderOfReports(t *testing.T) {
	at := func(days int) ReadCertificate {
		return ReadCertificate{Held: HeldCertificate{NotAfter: certificateBegin.AddDate(0, 0, days)}}
	}
	files := []CertificateFile{{Path: "d"}, {Path: "c"}, {Path: "b"}, {Path: "a"}}
	var got []string
	for _, r := range ReportCertificates(files, map[string]ReadCertificate{"d": at(2), "c": at(2), "b": {Missing: true},
		"a": at(3)}, certificateBegin) {
		got = append(got, r.Path)
	}
	if want := []string{"b", "c", "d", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWhatIsLeft(t *testing.T) {
	report := CertificateReport{Held: heldServer()}
	for after, want := range map[time.Duration]int{-time.Hour: 100, 0: 100, 45 * 24 * time.Hour: 50,
		90 * 24 * time.Hour: 0, 91 * 24 * time.Hour: 0} {
		left, percent := report.Left(certificateBegin.Add(after))
		if percent != want || left != 90*24*time.Hour-after {
			t.Errorf("after %v: %v, %d%%", after, left, percent)
		}
	}
	if _, percent := (CertificateReport{}).Left(certificateBegin); percent != 0 {
		t.Errorf("of nothing are left %d%%", percent)
	}
}

// Every certificate has its file, and every client but the apiserver's own a kubeconfig that is a copy.
func TestCertificateFiles(t *testing.T) {
	var got []string
	for _, file := range CertificateFiles(DecidePKI(PKIInput{Service: prefix("10.96.0.0/16"), Nodes: []string{"vm"}})) {
		got = append(got, file.Path+" "+file.CopyOf)
		if (file.Want == nil) != (file.Path == "pki/ca.crt") ||
			file.Want != nil && !strings.HasPrefix(file.Path[strings.Index(file.Path, "/")+1:], file.Want.File+".") {
			t.Errorf("%s is to hold %+v", file.Path, file.Want)
		}
	}
	want := []string{"pki/ca.crt ", "pki/apiserver.crt ", "pki/status.crt ", "pki/admin.crt ",
		"kubeconfig/admin.kubeconfig pki/admin.crt", "pki/apiserver-nodeagent-client.crt ", "pki/scheduler.crt ",
		"kubeconfig/scheduler.kubeconfig pki/scheduler.crt", "pki/workload-controllers.crt ",
		"kubeconfig/workload-controllers.kubeconfig pki/workload-controllers.crt", "pki/podgc.crt ",
		"kubeconfig/podgc.kubeconfig pki/podgc.crt", "pki/vm.crt ", "kubeconfig/vm.kubeconfig pki/vm.crt",
		"pki/vm-serving.crt "}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// The agent of a worker keeps them below the --root-dir of its unit.
	if files := WorkerCertificateFiles("vm"); len(files) != 3 ||
		!strings.HasPrefix("/d/"+files[1].Path, Layout{Dir: "/d"}.Node("vm").Agent()+"/pki/") {
		t.Errorf("of a worker: %v", files)
	}
}

func TestChooseCertificates(t *testing.T) {
	all := []Certificate{{File: "admin"}, {File: "b"}}
	for names, want := range map[string]string{"": "admin b", "b": "b", "b admin b": "admin b",
		"ca": "NAME: the authority ca is not renewed, because everybody trusts it: keel certs rotate-ca replaces it; " +
			"give one of admin, b",
		"b x": `NAME: "x" is no certificate of the mesh: give one of admin, b`} {
		chosen, err := ChooseCertificates(all, strings.Fields(names))
		var got []string
		for _, certificate := range chosen {
			got = append(got, certificate.File)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %s, want %s", names, got, want)
		}
	}
}

// A certificate is shown with all its names and addresses.
func TestFor(t *testing.T) {
	for want, c := range map[string]HeldCertificate{
		"u": {User: "u"}, "u (g, h)": {User: "u", Groups: []string{"g", "h"}},
		"u (a, b): h, i, 192.0.2.1, 192.0.2.2": heldServer(),
	} {
		if got := c.For(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestUnitOptions(t *testing.T) {
	in := machineInput()
	tiers := DecideUnits(in, nil)
	for _, tier := range tiers {
		for _, unit := range tier {
			programs, level := UnitOptions(unit.Content)
			if _, runtime := NodeOfContainerd(
				unit.Process.Name,
			); programs != in.Programs ||
				(level != in.LogLevel) != runtime {
				t.Errorf("%s: %q, %q", unit.Name, programs, level)
			}
		}
	}
	if programs, level := UnitOptions("-> /dev/null"); programs != "" || level != "" {
		t.Errorf("of a link: %q, %q", programs, level)
	}
}
