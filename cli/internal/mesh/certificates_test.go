package mesh

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/kit/subprocess"
)

func (b *bed) renew(t *testing.T, renewal Renewal) error {
	return Renew(t.Context(), b.opened(t), renewal)
}

func (b *bed) mustRenew(t *testing.T, renewal Renewal) {
	t.Helper()
	if err := b.renew(t, renewal); err != nil {
		t.Fatalf("%v\n%s", err, b.out.String())
	}
}

// opened is the mesh as `keel certs list` has it.
func (b *bed) opened(t *testing.T) *Mesh {
	t.Helper()
	m := b.mesh()
	var err error
	if m.State, err = state.Load(b.layout); err != nil {
		t.Fatal(err)
	}
	return m
}

// expire makes certificates as they were made three years ago, with their keys.
func (b *bed) expire(t *testing.T, files ...string) {
	t.Helper()
	m := b.opened(t)
	wanted, err := m.wantedCertificates()
	if err != nil {
		t.Fatal(err)
	}
	wanted = slices.DeleteFunc(wanted, func(c plan.Certificate) bool { return !slices.Contains(files, c.File) })
	if err := pki.Renew(b.layout, wanted, false, time.Now().AddDate(-3, 0, 0)); err != nil {
		t.Fatal(err)
	}
	for _, c := range wanted {
		if c.HasKubeconfig() {
			if err := pki.EnsureKubeconfig(b.layout, c.File, m.ServerURL()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// needCare are the files that are not good, with their states.
func (b *bed) needCare(t *testing.T) string {
	t.Helper()
	reports, err := b.opened(t).Certificates(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range reports {
		if r.State != plan.CertificateGood {
			all = append(all, fmt.Sprint(r.Path, " ", r.State))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// sums are the certificates that files hold.
func (b *bed) sums(t *testing.T) map[string]string {
	t.Helper()
	reports, err := b.opened(t).Certificates(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, r := range reports {
		sums[r.Path] = r.Held.Sum
	}
	return sums
}

// answers asks the apiserver by the operator's kubeconfig, as kubectl does.
func (b *bed) answers(t *testing.T) error {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", b.layout.Kubeconfig(plan.AdminCertificate))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err == nil {
		_ = answer.Body.Close()
	}
	return err
}

const (
	restartFirst = "daemon-reload\nrestart keelson-apiserver.service"
	restartRest  = "\nrestart keelson-scheduler.service keelson-workload-controllers.service keelson-podgc.service " +
		"keelson-nodeagent.service"
)

// Running processes use the renewed certificates; only those that read one are restarted, and keel init has
// nothing to do afterwards.
func TestRenewOfUnits(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	for _, row := range []struct {
		names, calls, changed string
	}{
		{"", restartFirst + restartRest, "admin apiserver apiserver-nodeagent-client podgc scheduler status " +
			"store-peer vm vm-serving workload-controllers"},
		{"podgc", "daemon-reload\nrestart keelson-podgc.service", "podgc"},
		{"admin", "", "admin"}, // no daemon is the operator
		{"apiserver vm", restartFirst + "\nrestart keelson-nodeagent.service", "apiserver vm"},
	} {
		before := b.sums(t)
		b.mustRenew(t, Renewal{Names: strings.Fields(row.names)})
		if got := strings.Join(b.calls, "\n"); got != row.calls {
			t.Errorf("renew %s: systemctl was told\n%s\nwant\n%s", row.names, got, row.calls)
		}
		wantSaid := row.names == "" || row.names == "admin"
		if said := strings.Contains(b.out.String(), "admin.kubeconfig elsewhere"); said != wantSaid {
			t.Errorf("renew %s: it said\n%s", row.names, b.out.String())
		}
		var changed []string
		for path, sum := range b.sums(t) {
			if name, ok := strings.CutSuffix(filepath.Base(path), ".crt"); ok && sum != before[path] {
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
		if got := strings.Join(changed, " "); got != row.changed {
			t.Errorf("renew %s: changed are %s", row.names, got)
		}
		b.expect(t)
		if care := b.needCare(t); care != "" {
			t.Errorf("renew %s: there need care\n%s", row.names, care)
		}
		b.mustInit(t)
		if len(b.calls) > 0 {
			t.Errorf("renew %s: keel init has to call %v", row.names, b.calls)
		}
	}
}

// The runbook of docs/reference/mesh-certificates.md: whichever certificates have expired, whether the mesh runs
// or not, keel certs list reports it, keel certs renew renews them, and the mesh answers again.
func TestExpiredCertificates(t *testing.T) {
	for name, row := range map[string]struct {
		files []string
		down  bool
		care  string
	}{
		"the operator's":  {[]string{"admin"}, false, "kubeconfig/admin.kubeconfig expired\npki/admin.crt expired"},
		"the apiserver's": {[]string{"apiserver"}, false, "pki/apiserver.crt expired"},
		"both, while it is down": {[]string{"admin", "apiserver"}, true,
			"kubeconfig/admin.kubeconfig expired\npki/admin.crt expired\npki/apiserver.crt expired"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.mustInit(t)
			b.expire(t, row.files...)
			units := plan.UnitNames()
			for _, unit := range units { // as systemd has them after a boot, or not at all
				b.stop(unit)
				if row.down {
					continue
				}
				if err := b.start(unit); err != nil {
					t.Fatal(err)
				}
			}
			if care := b.needCare(t); care != row.care {
				t.Errorf("there need care\n%s\nwant\n%s", care, row.care)
			}
			if err := b.answers(t); err == nil && (row.down || slices.Contains(row.files, "apiserver")) {
				t.Error("the mesh answers by what has expired")
			}
			b.mustRenew(t, Renewal{Names: row.files})
			if care := b.needCare(t); care != "" {
				t.Errorf("after it there need care\n%s", care)
			}
			if row.down {
				if len(b.running) > 0 {
					t.Errorf("it started %s", b.pids())
				}
				b.mustInit(t)
			}
			if err := b.answers(t); err != nil {
				t.Errorf("the mesh does not answer: %v", err)
			}
			b.expect(t)
		})
	}
}

// Units that an operator has stopped or disabled stay so, and read the new files when they start.
func TestRenewStartsNothing(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	const unit = "keelson-podgc.service"
	b.stop(unit)
	delete(b.enabled, unit)
	if err := os.Remove(filepath.Join(b.dir, "keelson-scheduler.service")); err != nil {
		t.Fatal(err)
	}
	b.stop("keelson-scheduler.service")
	b.mustRenew(t, Renewal{})
	const want = restartFirst + "\nrestart keelson-workload-controllers.service keelson-nodeagent.service"
	if got := strings.Join(b.calls, "\n"); got != want {
		t.Errorf("systemctl was told\n%s\nwant\n%s", got, want)
	}
	if err := b.start(unit); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(b.dir, unit))
	if err != nil || b.loaded[unit] != string(content) || b.enabled[unit] {
		t.Errorf("systemd has another unit than the file: %v", err)
	}
	// Without an apiserver the others are not waited for.
	b.stop("keelson-apiserver.service")
	b.broken = unit
	b.mustRenew(t, Renewal{Names: []string{"podgc"}})
	if got, want := strings.Join(b.calls, "\n"), "daemon-reload\nrestart "+unit; got != want {
		t.Errorf("without an apiserver systemctl was told\n%s\nwant\n%s", got, want)
	}
	// After a reset only files are left.
	must(t, b.reset(t))
	b.mustRenew(t, Renewal{})
	if len(b.calls) > 0 ||
		!strings.Contains(b.out.String(), "keelson-apiserver.service is not there, and keel init makes it") {
		t.Errorf("after a reset it called %v and said\n%s", b.calls, b.out.String())
	}
}

// The units keep their programs and log level.
func TestRenewKeepsWhatUnitsSay(t *testing.T) {
	b := newBed(t)
	b.options.LogLevel = "debug"
	b.mustInit(t)
	before := maps.Clone(b.loaded)
	b.mustRenew(t, Renewal{})
	for unit, content := range before {
		_, was := execution(content)
		if _, is := execution(b.loaded[unit]); !slices.Equal(is, was) {
			t.Errorf("%s is started with\n%v\nand was with\n%v", unit, is, was)
		}
	}
}

// Another run, or keel init, completes a run that is interrupted at any call.
func TestRenewIsCutOff(t *testing.T) {
	for call := 1; ; call++ {
		cuts := 0
		for _, after := range []bool{false, true} {
			b := newBed(t)
			b.mustInit(t)
			b.expire(t, "admin", "apiserver")
			finish := func(t *testing.T) error { return b.renew(t, Renewal{NewKeys: after}) }
			if b.cutAt(t, call, after, finish) {
				cuts++
			}
			if call%2 == 0 {
				must(t, finish(t))
			} else {
				b.mustInit(t)
			}
			if care := b.needCare(t); care != "" {
				t.Errorf("call %d, done %t: there need care\n%s", call, after, care)
			}
			must(t, b.answers(t))
			b.expect(t)
		}
		if cuts == 0 {
			if call < 4 {
				t.Errorf("it has %d calls only", call-1)
			}
			return
		}
	}
}

// New keys are new, and their pairs whole.
func TestRenewWithNewKeys(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	key := func(name string) string {
		content, err := os.ReadFile(b.layout.PKI(name + ".key"))
		must(t, err)
		return string(content)
	}
	admin, podgc, ca := key("admin"), key("podgc"), key("ca")
	b.mustRenew(t, Renewal{Names: []string{"admin"}, NewKeys: true})
	if key("admin") == admin || key("podgc") != podgc || key("ca") != ca {
		t.Error("the keys are not those that were asked for")
	}
	must(t, b.answers(t))
	if care := b.needCare(t); care != "" {
		t.Errorf("there need care\n%s", care)
	}
}

// A renewal that is not possible fails with one sentence and changes nothing.
func TestRenewRefuses(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	before := tree(t, b.layout.Dir)
	for name, want := range map[string]string{"ca": "NAME: the authority ca is not renewed", "x": `NAME: "x" is no certificate`} {
		var unknown *plan.NameError
		err := b.renew(t, Renewal{Names: []string{"admin", name}})
		if !errors.As(err, &unknown) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := tree(t, b.layout.Dir); after != before || len(b.calls) > 0 {
		t.Errorf("it changed something and called %v", b.calls)
	}
}

// keel up reports the daemons that run with old certificates, and not those that have read the present ones.
func TestOldCertificatesOfProcesses(t *testing.T) {
	m := &Mesh{Layout: plan.Layout{Dir: t.TempDir()}, State: &state.State{Ports: map[string]int{},
		BindAddress: "127.0.0.1", Advertise: "127.0.0.1"}}
	input, err := m.processInput("", "")
	must(t, err)
	tiers := plan.DecideProcesses(input)
	started, err := subprocess.Start(subprocess.Command{Name: plan.PodGC, Path: "/bin/sleep", Args: []string{"1000"},
		Log: m.Layout.Log(plan.PodGC)})
	must(t, err)
	t.Cleanup(func() { _ = started.Signal(syscall.SIGKILL) })
	m.State.Put(started)
	file := m.Layout.Kubeconfig(plan.PodGC)
	must(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)))
	for after, want := range map[time.Duration]int{-time.Hour: 0, 999 * time.Millisecond: 0, 2 * time.Second: 1} {
		at := started.Started.Add(after)
		must(t, os.Chtimes(file, at, at))
		got := m.withOldCertificates(slices.Concat(tiers...))
		if len(got) != want || want == 1 && got[0] != plan.PodGC {
			t.Errorf("written %v after the start: %v", after, got)
		}
	}
}
