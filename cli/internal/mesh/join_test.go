package mesh

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// workerUnits are the units of a machine that has joined, in the order of starting.
var workerUnits = []string{"keelson-containerd.service", "keelson-nodeagent.service"}

// joinBed is a machine on which keel join is tried, and the mesh that it joins.
type joinBed struct {
	*bed
	api *fakeAPI
}

// newJoinBed has a record of ports of its own, as newBed does.
func newJoinBed(t *testing.T) *joinBed {
	t.Helper()
	addresses, err := host.Addresses()
	if err != nil || len(addresses) == 0 {
		t.Skipf("this machine has no address that a node could have: %v", err)
	}
	b := &joinBed{newBed(t), newFakeAPI(t)}
	b.wanted = workerUnits
	b.options.Join = b.api.joining(t)
	b.options.Join.NodeIP = addresses[0]
	b.record(t, func(s *state.State) { s.Server = b.api.URL })
	return b
}

func (b *joinBed) join(t *testing.T) error { return Join(t.Context(), b.mesh(), b.options) }

func (b *joinBed) mustJoin(t *testing.T) {
	t.Helper()
	if err := b.join(t); err != nil {
		t.Fatalf("%v\n%s", err, b.out.String())
	}
	b.expect(t)
	files := b.layout.Node("vm")
	if _, err := os.Stat(files.Kubeconfig()); err != nil {
		t.Errorf("the agent has no certificate: %v", err)
	}
	if _, err := os.Stat(files.BootstrapKubeconfig()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the token is left on the machine: %v", err)
	}
}

// The runtime starts first, the agent requests its certificates, and the machine has no part of a control plane.
func TestJoinInItsOrder(t *testing.T) {
	b := newJoinBed(t)
	b.mustJoin(t)
	want := []string{"daemon-reload", "enable " + strings.Join(workerUnits, " "), "restart " + workerUnits[0],
		"restart " + workerUnits[1]}
	if !slices.Equal(b.calls, want) {
		t.Errorf("systemctl was told\n%s", strings.Join(b.calls, "\n"))
	}
	if !strings.Contains(b.out.String(), "==> waiting for the node vm ... ") {
		t.Errorf("it said\n%s", b.out.String())
	}
	entries, err := os.ReadDir(filepath.Join(b.layout.Dir, "pki"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "ca.crt" {
		t.Errorf("certificates of a worker: %v, %v", entries, err)
	}
	unit := b.loaded["keelson-nodeagent.service"]
	for _, flag := range []string{"--vxlan-id=4711", "--pod-network=vxlan", "--cluster-cidr=10.201.0.0/16",
		"--service-cluster-ip-range=10.202.0.0/16", "--cluster-dns=10.202.0.10", "--cluster-domain=mesh.local",
		"--node-ip=" + b.options.Join.NodeIP.String(), "--rotate-certificates", "--rotate-server-certificates"} {
		if !strings.Contains(unit, "  "+flag+" ") && !strings.Contains(unit, "  "+flag+"\n") {
			t.Errorf("the agent is not started with %s:\n%s", flag, unit)
		}
	}
}

// A machine that has joined is updated without a token, even an expired one, and units that match the plan stay
// untouched.
func TestJoinAgain(t *testing.T) {
	b := newJoinBed(t)
	b.mustJoin(t)
	b.api.change(func() { b.api.signs, b.api.believes = false, false })
	before := b.pids()
	b.options.Join = &Joining{}
	b.mustJoin(t)
	if len(b.calls) > 0 || b.pids() != before {
		t.Errorf("systemctl was told %v", b.calls)
	}
	b.stop("keelson-nodeagent.service")
	b.mustJoin(t)
	if want := []string{"restart keelson-nodeagent.service"}; !slices.Equal(b.calls, want) {
		t.Errorf("systemctl was told %v, want %v", b.calls, want)
	}
	b.options.LogLevel = "debug"
	b.mustJoin(t)
	if want := []string{"daemon-reload", "restart keelson-nodeagent.service"}; !slices.Equal(b.calls, want) {
		t.Errorf("systemctl was told %v, want %v", b.calls, want)
	}
}

// The same command completes a run that is interrupted at any call; also one that was interrupted after the agent
// got its certificate, although its own node is alive then.
func TestJoinIsCutOff(t *testing.T) {
	for call := 1; ; call++ {
		cuts := 0
		for _, after := range []bool{false, true} {
			b := newJoinBed(t)
			if b.cutAt(t, call, after, b.join) {
				cuts++
			}
			b.api.change(func() { b.api.living["vm"] = b.joinedHere() })
			t.Run(fmt.Sprintf("call %d, done %t", call, after), b.mustJoin)
		}
		if cuts == 0 {
			if call < 5 {
				t.Errorf("it has %d calls only", call-1)
			}
			return
		}
	}
}

func (b *joinBed) joinedHere() bool {
	_, err := os.Stat(b.layout.Node("vm").Kubeconfig())
	return err == nil
}

// Each problem is reported in a sentence, and nothing is written.
func TestJoinRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*testing.T, *joinBed)
		want   string
	}{
		"another secret": {func(_ *testing.T, b *joinBed) { b.options.Join.Token.Secret = "0123456789abcdeg" },
			"--token: its secret is not the one of token abcdef"},
		"another hash": {func(_ *testing.T, b *joinBed) {
			b.options.Join.Pins = []string{"sha256:" + strings.Repeat("0", 64)}
		}, discovery.PinFlag + ": the mesh's authority is sha256:"},
		"a token that is not believed": {func(_ *testing.T, b *joinBed) {
			b.api.change(func() { b.api.believes = false })
		}, "--token: the apiserver does not believe token abcdef"},
		"nobody there": {func(_ *testing.T, b *joinBed) { b.options.Join.Address = "127.0.0.1:1" },
			"no apiserver answers at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; is it"},
		"a clock that is slow": {func(_ *testing.T, b *joinBed) {
			b.api.change(func() { b.api.skew = 6 * time.Minute })
		}, "this machine's clock is "},
		"a name that is taken": {func(_ *testing.T, b *joinBed) {
			b.api.change(func() { b.api.living["vm"] = true })
		}, "--node-name: the mesh has a node vm, which is alive"},
		"a name that no node has": {func(_ *testing.T, b *joinBed) { b.options.NodeName = "Vm_1" },
			`--node-name: "Vm_1": `},
		"an address of others": {func(_ *testing.T, b *joinBed) {
			b.options.Join.NodeIP = b.options.Join.NodeIP.Next().Next()
		}, "--node-ip: this machine does not have "},
		"a mesh of its own": {func(t *testing.T, b *joinBed) { b.record(t, func(s *state.State) { s.Server = "" }) },
			"holds a mesh of this machine's own"},
		"another mesh's unit": {func(t *testing.T, b *joinBed) {
			file := filepath.Join(b.dir, "keelson-apiserver.service")
			content := plan.Layout{Dir: "/elsewhere"}.UnitOwner() + "\n"
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "keelson-apiserver.service is there and not of this mesh"},
		"nothing to join": {func(_ *testing.T, b *joinBed) { b.options.Join = &Joining{} },
			"this machine has not joined a mesh yet"},
		"settings of a later keel": {func(_ *testing.T, b *joinBed) {
			b.api.change(func() { b.api.settings = strings.Replace(b.api.settings, `"version":1`, `"version":2`, 1) })
		}, "the mesh's settings of nodes have version 2, and this keel knows version 1"},
		"Pods where the machine is": {func(_ *testing.T, b *joinBed) {
			b.api.change(func() { b.api.settings = strings.Replace(b.api.settings, "10.202.", "10.201.", 1) })
		}, "overlaps the Pod range"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newJoinBed(t)
			row.change(t, b)
			b.mustRefuse(t, b.join, row.want)
		})
	}
}

// A machine stays with its mesh, and neither init nor up takes it over.
func TestAWorkerStaysWithItsMesh(t *testing.T) {
	b := newJoinBed(t)
	b.mustJoin(t)
	other := newFakeAPI(t)
	nodeIP := b.options.Join.NodeIP
	b.options.Join = other.joining(t)
	b.options.Join.NodeIP = nodeIP
	if err := b.join(t); err == nil || !strings.Contains(err.Error(), "is of a worker of another mesh, which was at "+
		b.api.URL) {
		t.Errorf("another mesh: %v", err)
	}
	b.options.Join = nil
	for name, run := range map[string]func() error{
		"init": func() error { return b.init(t) },
		"up":   func() error { return Up(t.Context(), b.mesh(), b.options) },
		"down": func() error { return Down(t.Context(), b.mesh()) },
		"open": func() error { _, err := Open(b.layout.Dir, &b.out); return err },
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), "worker") {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.expect(t)
}

// A worker uses the URL that the mesh gives for itself, and only a change of it restarts the agent, whether the
// worker joins there or is updated.
func TestAWorkerFollowsItsMesh(t *testing.T) {
	for name, asked := range map[string]bool{"joined again": true, "brought up to date": false} {
		t.Run(name, func(t *testing.T) {
			b := newJoinBed(t)
			b.mustJoin(t)
			nodeIP, there := b.options.Join.NodeIP, strings.Replace(b.api.URL, "127.0.0.1", "localhost", 1)
			b.api.change(func() { b.api.said = there })
			b.options.Join = &Joining{}
			if asked {
				b.options.Join = b.api.joining(t)
				b.options.Join.NodeIP = nodeIP
			}
			b.mustJoin(t)
			if want := []string{"daemon-reload", "restart keelson-nodeagent.service"}; !slices.Equal(b.calls, want) {
				t.Errorf("systemctl was told %v, want %v", b.calls, want)
			}
			agent, err := os.ReadFile(b.layout.Node("vm").Kubeconfig())
			if err != nil || !strings.Contains(string(agent), "server: "+there+"\n") {
				t.Errorf("the agent goes on by %s, %v", agent, err)
			}
			b.options.Join = &Joining{}
			b.mustJoin(t)
			if recorded, err := state.Load(b.layout); len(b.calls) > 0 || err != nil || recorded.Server != there {
				t.Errorf("once more systemctl was told %v, and %s is recorded, %v", b.calls, recorded.Server, err)
			}
		})
	}
}

// A worker does not switch to a URL that does not answer.
func TestAWorkerStaysWhereItIsAnswered(t *testing.T) {
	b := newJoinBed(t)
	b.mustJoin(t)
	b.api.change(func() { b.api.said = "https://127.0.0.1:1" })
	b.options.Join = &Joining{}
	b.out.Reset()
	b.mustJoin(t)
	recorded, err := state.Load(b.layout)
	if err != nil || recorded.Server != b.api.URL || len(b.calls) > 0 {
		t.Errorf("it is at %s (%v), and systemctl was told %v", recorded.Server, err, b.calls)
	}
	want := "the mesh says that it is at https://127.0.0.1:1, and this machine goes on with " + b.api.URL + ": no api"
	if !strings.Contains(b.out.String(), want) {
		t.Errorf("it says\n%s", b.out.String())
	}
}

// After a reset the node's certificates are there, and keel join goes on from them.
func TestResetOfAWorker(t *testing.T) {
	for call := 1; ; call++ {
		b := newJoinBed(t)
		b.mustJoin(t)
		b.calls = nil
		cut := b.cutAt(t, call, false, b.reset)
		if cut {
			if err := b.reset(t); err != nil {
				t.Errorf("after call %d was cut off: %v", call, err)
			}
		}
		left, listed := os.ReadDir(b.dir)
		if listed != nil || len(left) > 0 || len(b.enabled) > 0 || len(b.running) > 0 {
			t.Errorf("left are files %v (%v), enabled %v, running %s", left, listed, b.enabled, b.pids())
		}
		if !cut {
			if said := b.out.String(); !strings.Contains(said, "kubectl delete node vm\n") || call < 5 {
				t.Errorf("it has %d calls and said\n%s", call-1, said)
			}
			b.options.Join = &Joining{}
			b.mustJoin(t)
			return
		}
	}
}

// A machine that joins trusts the mesh's own authority and no other.
func TestJoinKeepsTheAuthority(t *testing.T) {
	b := newJoinBed(t)
	b.mustJoin(t)
	kept, err := os.ReadFile(b.layout.PKI("ca.crt"))
	if err != nil || !bytes.Equal(bytes.TrimSpace(kept), bytes.TrimSpace(b.api.authority(t))) {
		t.Errorf("it keeps %s, %v", kept, err)
	}
}
