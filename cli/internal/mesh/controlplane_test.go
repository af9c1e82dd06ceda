package mesh

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/invite"
	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// controlPlaneBed is a machine on which keel join --control-plane is tried, and the mesh that it joins.
type controlPlaneBed struct {
	*bed
	api    *fakeAPI
	bundle invite.Bundle
}

func newControlPlaneBed(t *testing.T) *controlPlaneBed {
	t.Helper()
	addresses, err := host.Addresses()
	if err != nil || len(addresses) == 0 {
		t.Skipf("this machine has no address that a node could have: %v", err)
	}
	b := &controlPlaneBed{bed: newBed(t), api: newFakeAPI(t)}
	store := plan.Certificate{File: "store-peer", User: "keelson-store", Store: true,
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	if _, err := pki.Ensure(b.api.layout, []plan.Certificate{store}, time.Now()); err != nil {
		t.Fatal(err)
	}
	b.bundle = invite.Bundle{Expires: time.Now().Add(time.Hour), Stores: []string{"https://192.0.2.1:2380"}}
	if b.bundle.Files, err = pki.ReadShared(b.api.layout); err != nil {
		t.Fatal(err)
	}
	b.options.Join = b.api.joining(t)
	b.options.Join.NodeIP, b.options.Join.ControlPlane, b.options.Join.Key = addresses[0], true, invite.Key{1}
	b.seal(t)
	b.record(t, func(s *state.State) { s.ControlPlane, s.BindAddress = true, "0.0.0.0" })
	return b
}

// seal has the API keep the bundle as it is now.
func (b *controlPlaneBed) seal(t *testing.T) {
	t.Helper()
	sealed, err := invite.Seal(b.bundle, b.options.Join.Key, b.api.token.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.api.change(func() { b.api.sealed = sealed })
}

func (b *controlPlaneBed) join(t *testing.T) error { return Join(t.Context(), b.mesh(), b.options) }

func (b *controlPlaneBed) mustJoin(t *testing.T) {
	t.Helper()
	if err := b.join(t); err != nil {
		t.Fatalf("%v\n%s", err, b.out.String())
	}
	b.expect(t)
}

// The machine runs what a first machine runs, with the mesh's keys, and its store joins the others' store.
func TestJoinControlPlane(t *testing.T) {
	b := newControlPlaneBed(t)
	b.bundle.Encryption = []byte("kind: EncryptionConfiguration\n")
	b.bundle.Endpoint = "mesh.example.com:6443"
	b.seal(t)
	b.mustJoin(t)
	b.serves(t, "mesh.example.com")
	if got := b.reachedAt(t); got != "mesh.example.com:6443" {
		t.Errorf("it has others join at %s", got)
	}
	for _, name := range plan.SharedFiles() {
		got, err := os.ReadFile(b.layout.PKI(name))
		if want := b.bundle.Files[name]; err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not the mesh's: %v", name, err)
		}
		if info, err := os.Stat(b.layout.PKI(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	unit := b.loaded["keelson-apiserver.service"]
	for _, flag := range []string{"--etcd-join=https://192.0.2.1:2380", "--etcd-peer-address=" +
		b.options.Join.NodeIP.String() + ":", "--encryption-provider-config=" + b.layout.Encryption(),
		"--advertise-address=" + b.options.Join.NodeIP.String(), "--service-cluster-ip-range=10.202.0.0/16"} {
		if !strings.Contains(unit, "  "+flag) {
			t.Errorf("the apiserver is not started with %s:\n%s", flag, unit)
		}
	}
	if agent := b.loaded["keelson-nodeagent.service"]; !strings.Contains(agent, "--vxlan-id=4711") {
		t.Errorf("the agent is not of the mesh's network:\n%s", agent)
	}
	before := b.pids()
	b.options.Join = &Joining{}
	b.mustJoin(t)
	if len(b.calls) > 0 || b.pids() != before {
		t.Errorf("a second run told systemctl %v", b.calls)
	}
	if err := b.init(t); err == nil || !strings.Contains(err.Error(), "keel join brings it up to date") {
		t.Errorf("keel init: %v", err)
	}
	if m, err := Open(b.layout.Dir, &b.out); err != nil || m.Maker() != "keel join" {
		t.Errorf("opening it: %v", err)
	}
}

// The same command completes a run that is interrupted at any call; keel join without arguments does so too, once
// the machine has the keys.
func TestJoinControlPlaneIsCutOff(t *testing.T) {
	for call := 1; ; call++ {
		cuts := 0
		for _, after := range []bool{false, true} {
			b := newControlPlaneBed(t)
			if b.cutAt(t, call, after, b.join) {
				cuts++
			}
			t.Run(fmt.Sprintf("call %d, done %t", call, after), func(t *testing.T) {
				if pki.HasShared(b.layout) {
					b.api.change(func() { b.api.signs, b.api.living["vm"] = false, true })
					b.options.Join = &Joining{}
				}
				b.mustJoin(t)
			})
		}
		if cuts == 0 {
			if call < 5 {
				t.Errorf("it has %d calls only", call-1)
			}
			return
		}
	}
}

// Each problem is reported in a sentence, and nothing is written.
func TestJoinControlPlaneRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*testing.T, *controlPlaneBed)
		want   string
	}{
		"another key": {func(_ *testing.T, b *controlPlaneBed) { b.options.Join.Key[31]++ },
			"--certificate-key: it is not the one that was printed with the token"},
		"a token of workers": {func(_ *testing.T, b *controlPlaneBed) {
			b.api.change(func() { b.api.sealed = nil })
		}, "--token: token abcdef is not for the control plane"},
		"one that has expired": {func(t *testing.T, b *controlPlaneBed) {
			b.bundle.Expires = time.Now().Add(-time.Second)
			b.seal(t)
		}, "--token: what it was for has expired at "},
		"another authority": {func(t *testing.T, b *controlPlaneBed) {
			b.bundle.Files["ca.crt"] = []byte("another")
			b.seal(t)
		}, "what the control plane shares is of another authority"},
		"a worker": {func(t *testing.T, b *controlPlaneBed) {
			b.record(t, func(s *state.State) { s.ControlPlane, s.Server = false, b.api.URL })
		}, "--control-plane: "},
		"a mesh of its own": {func(t *testing.T, b *controlPlaneBed) {
			b.record(t, func(s *state.State) { s.ControlPlane = false })
		}, "holds a mesh of this machine's own"},
		"nothing to join": {func(_ *testing.T, b *controlPlaneBed) { b.options.Join = &Joining{} },
			"this machine has not joined the control plane of a mesh yet"},
		"without the flag": {func(_ *testing.T, b *controlPlaneBed) { b.options.Join.ControlPlane = false },
			"is of a machine that has joined the control plane: leave address and token out"},
		"a name that is taken": {func(_ *testing.T, b *controlPlaneBed) {
			b.api.change(func() { b.api.living["vm"] = true })
		}, "--node-name: the mesh has a node vm, which is alive"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newControlPlaneBed(t)
			row.change(t, b)
			b.mustRefuse(t, b.join, row.want)
		})
	}
}
