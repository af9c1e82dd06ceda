package mesh

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// bed is a machine on which keel init is tried.
type bed struct {
	*fakeSystemd
	layout  plan.Layout
	options Options
	// addresses are the machine's addresses at the start of the test: others' bridges come and go.
	addresses []netip.Addr
	out       bytes.Buffer
}

// mustRefuse checks that run finds one problem with the machine and changes nothing.
func (b *bed) mustRefuse(t *testing.T, run func(*testing.T) error, want string) {
	t.Helper()
	before := tree(t, b.layout.Dir) + tree(t, b.dir)
	err := run(t)
	var unfit *UnfitError
	if !errors.As(err, &unfit) || len(unfit.Problems) != 1 || !strings.Contains(unfit.Problems[0], want) {
		t.Fatalf("got %v\nwant %s", err, want)
	}
	if after := tree(t, b.layout.Dir) + tree(t, b.dir); after != before || len(b.calls) > 0 {
		t.Errorf("it changed\n%s\nto\n%s\nand called %v", before, after, b.calls)
	}
}

// newBed has programs that do nothing. Its mesh has recorded ports of its own, so that others of this machine do not
// matter.
func newBed(t *testing.T) *bed {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("keel init needs root")
	}
	if cgroups, err := host.Cgroups(); err != nil || !cgroups.Mounted {
		t.Skipf("keel init needs cgroups: %v", err)
	}
	dir, err := os.MkdirTemp("", "keelinit")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &bed{fakeSystemd: newFakeSystemd(t), layout: plan.Layout{Dir: filepath.Join(dir, "d")}}
	if b.addresses, err = host.Addresses(); err != nil {
		t.Fatal(err)
	}
	programs, images := filepath.Join(dir, "p"), filepath.Join(dir, "i")
	for _, program := range append(append([]string{"../i/pause.tar"}, controlPlanePrograms...), nodePrograms...) {
		file := filepath.Join(programs, program)
		err := errors.Join(os.MkdirAll(programs, 0o755), os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755))
		if err != nil {
			t.Fatal(err)
		}
	}
	b.options = Options{NodeName: "vm", BindAddress: netip.MustParseAddr("127.0.0.1"), Programs: programs,
		Images: images, LogLevel: "info"}
	record := &state.State{Version: 1, Units: true, Ports: map[string]int{}, BindAddress: "127.0.0.1"}
	for _, need := range plan.PortNeeds(plan.NeedsInput{Layout: b.layout, Nodes: []string{"vm"}}) {
		record.Ports[need.Name] = freePort(t, record.Ports)
	}
	if err := errors.Join(os.MkdirAll(b.layout.Dir, 0o711), record.Save(b.layout)); err != nil {
		t.Fatal(err)
	}
	return b
}

// freePort returns a port that is not taken, outside the range from which the kernel assigns ports: it stays free
// while its daemon does not run.
func freePort(t *testing.T, taken map[string]int) int {
	t.Helper()
	const first, last = 10_000, 32_000 // the kernel's begin at 32,768
	for range 100 {
		port := first + rand.IntN(last-first)
		if slices.Contains(slices.Collect(maps.Values(taken)), port) {
			continue
		}
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func (b *bed) mesh() *Mesh {
	b.calls = nil
	b.out.Reset()
	return &Mesh{Layout: b.layout, Out: &b.out, Units: b.units(), Addresses: b.addresses}
}

func (b *bed) init(t *testing.T) error { return Init(t.Context(), b.mesh(), b.options) }

func (b *bed) mustInit(t *testing.T) {
	t.Helper()
	if err := b.init(t); err != nil {
		t.Fatalf("%v\n%s", err, b.out.String())
	}
	b.expect(t)
}

// systemd reads the units before it starts any, and the API and the runtime start before the rest.
func TestInitInItsOrder(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	want := []string{"daemon-reload",
		"enable keelson-apiserver.service keelson-containerd.service keelson-scheduler.service " +
			"keelson-workload-controllers.service keelson-podgc.service keelson-nodeagent.service",
		"restart keelson-apiserver.service keelson-containerd.service",
		"restart keelson-scheduler.service keelson-workload-controllers.service keelson-podgc.service " +
			"keelson-nodeagent.service"}
	if got := strings.Join(b.calls, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("systemctl was told\n%s", got)
	}
	if !strings.Contains(b.out.String(), "==> waiting for the node vm ... ") {
		t.Errorf("it said\n%s", b.out.String())
	}
	config, err := os.ReadFile(b.layout.Node("vm").RuntimeConfig())
	if err != nil || !strings.Contains(string(config), "SystemdCgroup = true") {
		t.Errorf("the runtime's configuration: %v\n%s", err, config)
	}
}

// Units that match the plan stay untouched; only the others are corrected.
func TestInitAgain(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	authority, err := os.ReadFile(b.layout.PKI("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	all := "keelson-scheduler.service keelson-workload-controllers.service keelson-podgc.service " +
		"keelson-nodeagent.service"
	for _, row := range []struct {
		name   string
		change func() error
		want   string
	}{
		{"nothing", func() error { return nil }, ""},
		{"a process has ended", func() error { b.stop("keelson-podgc.service"); return nil },
			"restart keelson-podgc.service"},
		{"a unit was edited", func() error {
			return os.WriteFile(filepath.Join(b.dir, "keelson-podgc.service"),
				[]byte(b.layout.UnitOwner()+"\n[Service]\n"), 0o644)
		}, "daemon-reload"},
		{"a unit was removed", func() error { return os.Remove(filepath.Join(b.dir, "keelson-podgc.service")) },
			"daemon-reload"},
		{"a unit was disabled", func() error { delete(b.enabled, "keelson-scheduler.service"); return nil },
			"enable keelson-scheduler.service"},
		{"a certificate is gone", func() error { return os.Remove(b.layout.PKI("podgc.crt")) },
			"daemon-reload\nrestart keelson-podgc.service"},
		{"a program is another one", func() error {
			file := filepath.Join(b.options.Programs, "keelson-scheduler")
			return errors.Join(os.Remove(file), os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755))
		}, "restart keelson-scheduler.service"},
		{"another log level", func() error { b.options.LogLevel = "debug"; return nil },
			"daemon-reload\nrestart keelson-apiserver.service\nrestart " + all},
	} {
		before := b.pids()
		if err := row.change(); err != nil {
			t.Fatal(err)
		}
		b.mustInit(t)
		if got := strings.Join(b.calls, "\n"); got != row.want {
			t.Errorf("%s: systemctl was told\n%s\nwant\n%s", row.name, got, row.want)
		}
		if after := b.pids(); !strings.Contains(row.want, "restart") && after != before {
			t.Errorf("%s: the processes were\n%s\nand are\n%s", row.name, before, after)
		}
	}
	if again, err := os.ReadFile(b.layout.PKI("ca.crt")); err != nil || !bytes.Equal(again, authority) {
		t.Errorf("the CA is another one: %v", err)
	}
}

// Other machines reach a mesh with an endpoint there, also after a run that does not name it, and the apiserver is
// restarted with a certificate for it.
func TestInitWithAnEndpoint(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	own := b.reachedAt(t)
	for _, row := range []struct{ endpoint, want, host, calls string }{
		{"", own, "", ""},
		{"mesh.example.com:7443", "mesh.example.com:7443", "mesh.example.com",
			"daemon-reload\nrestart keelson-apiserver.service"},
		{"", "mesh.example.com:7443", "mesh.example.com", ""},
		{"192.0.2.100:6443", "192.0.2.100:6443", "192.0.2.100", "daemon-reload\nrestart keelson-apiserver.service"},
	} {
		b.options.Endpoint = row.endpoint
		b.mustInit(t)
		if got := strings.Join(b.calls, "\n"); got != row.calls {
			t.Errorf("with endpoint %q systemctl was told\n%s\nwant\n%s", row.endpoint, got, row.calls)
		}
		if got := b.reachedAt(t); got != row.want {
			t.Errorf("with endpoint %q others reach it at %s, want %s", row.endpoint, got, row.want)
		}
		if row.host != "" {
			b.serves(t, row.host)
		}
	}
}

// reachedAt is where other machines reach the mesh.
func (b *bed) reachedAt(t *testing.T) string {
	t.Helper()
	m := b.mesh()
	var err error
	if m.State, err = state.Load(b.layout); err != nil {
		t.Fatal(err)
	}
	address, err := m.joinAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// serves sees that the certificate of the apiserver is for a host.
func (b *bed) serves(t *testing.T, host string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(b.layout.PKI("apiserver.crt"), b.layout.PKI("apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Leaf.VerifyHostname(host); err != nil {
		t.Error(err)
	}
}

// The next run completes a run that is interrupted at any call, whether that was the first run or one that changes
// units.
func TestInitIsCutOff(t *testing.T) {
	b := newBed(t)
	for round := range 2 {
		for call := 1; ; call++ {
			cuts := 0
			for _, after := range []bool{false, true} {
				b.options.LogLevel = []string{"info", "debug"}[(call+round)%2]
				if round == 0 { // a machine without units
					b = b.fresh(t)
				} else {
					b.options.LogLevel, b.cut = "warn", 0
					b.mustInit(t)
					b.options.LogLevel = "info"
				}
				if b.cutAt(t, call, after, b.init) {
					cuts++
				}
				t.Run(fmt.Sprintf("round %d, call %d, done %t", round, call, after), b.mustInit)
			}
			if cuts == 0 {
				if call < 4 {
					t.Errorf("round %d has %d calls only", round, call-1)
				}
				break
			}
		}
	}
}

// fresh is a bed whose last one is over.
func (b *bed) fresh(t *testing.T) *bed {
	t.Helper()
	for name := range b.running {
		b.stop(name)
	}
	return newBed(t)
}

// All problems are reported at once, in a sentence each, and nothing is written.
func TestInitRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*testing.T, *bed)
		want   []string
	}{
		"no programs": {func(_ *testing.T, b *bed) { b.options.Programs = "/nosuch" },
			[]string{"--programs: /nosuch lacks keelson-apiserver, keelson-scheduler,"}},
		"no images": {func(_ *testing.T, b *bed) { b.options.Images = "/nosuch" },
			[]string{"--images: /nosuch holds no image archives"}},
		"a path that a unit cannot have": {func(_ *testing.T, b *bed) { b.options.Programs += "/../p p" },
			[]string{"--programs: ", "--programs: "}},
		"another's unit": {func(t *testing.T, b *bed) {
			file := filepath.Join(b.dir, "keelson-podgc.service")
			if err := os.WriteFile(file, []byte("# hello\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, []string{`keelson-podgc.service is there and not of this mesh, it begins with "# hello"`}},
		"a masked unit": {func(t *testing.T, b *bed) {
			if err := os.Symlink("/dev/null", filepath.Join(b.dir, "keelson-podgc.service")); err != nil {
				t.Fatal(err)
			}
		}, []string{`it begins with "-> /dev/null"`}},
		"a node's name": {func(_ *testing.T, b *bed) { b.options.NodeName = "Vm_1" }, []string{`--node-name: "Vm_1": `}},
		"a daemon's name": {func(_ *testing.T, b *bed) { b.options.NodeName = "scheduler" },
			[]string{`--node-name: "scheduler" is the name of a daemon's certificate`}},
		"a port that is taken": {func(t *testing.T, b *bed) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { listener.Close() })
			b.record(t, func(s *state.State) { s.Ports["scheduler.status"] = listener.Addr().(*net.TCPAddr).Port })
		}, []string{"which this data directory has used for scheduler.status, is taken by another process"}},
		"a mesh of keel up": {func(t *testing.T, b *bed) { b.record(t, func(s *state.State) { s.Units = false }) },
			[]string{"holds a mesh of keel up: choose another folder"}},
		"a folder of others": {func(t *testing.T, b *bed) {
			if err := os.Rename(b.layout.State(), b.layout.State()+".old"); err != nil {
				t.Fatal(err)
			}
		}, []string{"holds files and no keel.json"}},
		"two things": {func(_ *testing.T, b *bed) { b.options.Images, b.options.NodeName = "/nosuch", "-" },
			[]string{"--images: ", "--node-name: "}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			row.change(t, b)
			before := tree(t, b.layout.Dir) + tree(t, b.dir)
			err := b.init(t)
			var unfit *UnfitError
			if !errors.As(err, &unfit) {
				t.Fatalf("got %v", err)
			}
			// Another mesh of the machine may have the ports that clients expect.
			unfit.Problems = slices.DeleteFunc(unfit.Problems, func(problem string) bool {
				return strings.Contains(problem, "which clients expect of")
			})
			if len(unfit.Problems) != len(row.want) {
				t.Fatalf("got %v", err)
			}
			for i, want := range row.want {
				if !strings.Contains(unfit.Problems[i], want) {
					t.Errorf("problem %d is %q, want %q", i, unfit.Problems[i], want)
				}
			}
			if after := tree(t, b.layout.Dir) + tree(t, b.dir); after != before || len(b.calls) > 0 {
				t.Errorf("it changed\n%s\nto\n%s\nand called %v", before, after, b.calls)
			}
		})
	}
}

func (b *bed) record(t *testing.T, change func(*state.State)) {
	t.Helper()
	recorded, err := state.Load(b.layout)
	if err != nil {
		t.Fatal(err)
	}
	change(recorded)
	if err := recorded.Save(b.layout); err != nil {
		t.Fatal(err)
	}
}

// tree lists a folder with its files' contents.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var content []byte
		if entry.Type().IsRegular() {
			content, err = os.ReadFile(path)
		}
		fmt.Fprintf(&all, "%s %s\n", path, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// keel stops waiting for a daemon that has ended five times.
func TestInitGivesUpOnABrokenDaemon(t *testing.T) {
	b := newBed(t)
	b.broken = "keelson-scheduler.service"
	err := b.init(t)
	const want = "keelson-scheduler.service has ended 5 times without getting ready: " +
		"journalctl -u keelson-scheduler.service says why"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// Only keel reset ends a mesh that systemd runs, and keel up starts nothing of it.
func TestUpAndDownLeaveItToSystemd(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	for name, run := range map[string]func() error{
		"up":   func() error { return Up(t.Context(), b.mesh(), b.options) },
		"down": func() error { return Down(t.Context(), b.mesh()) },
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), "systemd runs the mesh in "+b.layout.Dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.expect(t)
}

// keel status and keel explain see the units as the mesh's processes.
func TestProcessesOfUnits(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	b.stop("keelson-podgc.service")
	m := b.mesh()
	var err error
	if m.State, err = state.Load(b.layout); err != nil {
		t.Fatal(err)
	}
	processes, err := m.Processes(t.Context())
	if err != nil || len(processes) != 6 {
		t.Fatalf("got %v, %v", processes, err)
	}
	for _, p := range processes {
		if alive := p.Name != "podgc"; p.Alive != alive || (p.PID != 0) != alive || !m.Has(p.Name) ||
			p.Log != "journalctl -u "+plan.UnitName(p.Name) || alive && time.Since(p.Started) > time.Minute {
			t.Errorf("got %+v", p)
		}
	}
	if processes[5].Name != "nodeagent-vm" || m.Has("nodeagent-other") {
		t.Errorf("got %+v", processes[5])
	}
}

// The bridge of Pods is created after the first run: if its address were in certificates, the second run would
// renew them.
func TestAddressesOfPodsAreNotTheMachines(t *testing.T) {
	all, err := host.Addresses()
	if err != nil || len(all) == 0 {
		t.Skipf("this machine has no address: %v", err)
	}
	m := &Mesh{State: &state.State{}}
	if got, err := m.machineAddresses(); err != nil || len(got) != len(all) {
		t.Errorf("before there are Pods it has %v of %v, %v", got, all, err)
	}
	m.State.Ranges.Pod.IPv4 = netip.PrefixFrom(all[0], 32)
	if got, err := m.machineAddresses(); err != nil || slices.Contains(got, all[0]) || len(got) != len(all)-1 {
		t.Errorf("with Pods it has %v of %v, %v", got, all, err)
	}
}
