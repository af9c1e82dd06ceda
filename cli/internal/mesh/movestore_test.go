package mesh

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// moveStore runs MoveStore with a program that moves the store, or fails with err.
func (b *bed) moveStore(t *testing.T, move StoreMove, err error) (args []string, failed error) {
	t.Helper()
	move.Run = func(given []string) error {
		args = given
		return err
	}
	m := b.mesh()
	return args, m.MoveStore(t.Context(), move)
}

func (b *bed) apiserverUnit(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, plan.UnitName(plan.APIServer)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Once the program has moved the store, the record and the apiserver's unit name the new one, which the next start
// uses; nothing is started.
func TestMoveStore(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	before := b.apiserverUnit(t)
	etcd := &plan.Etcd{Servers: []string{"https://a:2379", "https://b:2379"}, CAFile: "/e/ca.crt"}
	if args, err := b.moveStore(t, StoreMove{Etcd: etcd}, nil); err == nil || args != nil ||
		!strings.Contains(err.Error(), "the apiserver runs: systemctl stop keelson-apiserver ends it") {
		t.Errorf("beside the apiserver: %v, %v", args, err)
	}
	b.stop(plan.UnitName(plan.APIServer))
	if args, err := b.moveStore(t, StoreMove{Embedded: true}, nil); err == nil || args != nil ||
		!strings.Contains(err.Error(), "--etcd-servers is missing: "+b.layout.State()+" names no etcd cluster") {
		t.Errorf("back without a cluster: %v, %v", args, err)
	}
	if _, err := b.moveStore(t, StoreMove{Etcd: etcd}, errors.New("not copied")); err == nil ||
		b.apiserverUnit(t) != before || b.recorded(t).Etcd != nil {
		t.Errorf("after a move that failed: %v, %+v", err, b.recorded(t).Etcd)
	}

	args, err := b.moveStore(t, StoreMove{Etcd: etcd}, nil)
	if err != nil || !slices.Equal(args, []string{"migrate", "--to=etcd", "--data-dir=" + b.layout.APIServer(),
		"--etcd-servers=https://a:2379,https://b:2379", "--etcd-cafile=/e/ca.crt"}) {
		t.Fatalf("%v, %v", args, err)
	}
	unit := b.apiserverUnit(t)
	if !strings.Contains(unit, "--etcd-servers=https://a:2379,https://b:2379") ||
		strings.Contains(unit, "--etcd-peer") {
		t.Errorf("the unit is\n%s", unit)
	}
	if b.running[plan.UnitName(plan.APIServer)] != nil || !slices.Equal(b.calls, []string{"daemon-reload"}) {
		t.Errorf("it called %v", b.calls)
	}
	if said := b.out.String(); !strings.Contains(said, "systemctl start keelson-apiserver") {
		t.Errorf("it said %q", said)
	}
	b.mustInit(t) // which starts it
	if b.apiserverUnit(t) != unit {
		t.Error("keel init has changed the unit again")
	}

	b.stop(plan.UnitName(plan.APIServer))
	args, err = b.moveStore(t, StoreMove{Embedded: true}, nil)
	if err != nil || !slices.Contains(args, "--to=embedded") || !slices.Contains(args, "--etcd-cafile=/e/ca.crt") {
		t.Fatalf("back: %v, %v", args, err)
	}
	if b.apiserverUnit(t) != before || b.recorded(t).Etcd != nil {
		t.Errorf("back, the unit is\n%s", b.apiserverUnit(t))
	}
}

// A run that is killed after the store was moved, at any step, is finished by the next.
func TestMoveStoreIsCutOff(t *testing.T) {
	etcd := &plan.Etcd{Servers: []string{"http://a:2379"}}
	b := newBed(t)
	b.mustInit(t)
	b.stop(plan.UnitName(plan.APIServer))
	if !b.cutAt(t, 1, false, func(t *testing.T) error {
		_, err := b.moveStore(t, StoreMove{Etcd: etcd}, nil)
		return err
	}) {
		t.Fatal("nothing was called")
	}
	if _, err := b.moveStore(t, StoreMove{}, nil); err != nil { // of the recorded cluster
		t.Fatal(err)
	}
	if name := plan.UnitName(plan.APIServer); b.loaded[name] != b.apiserverUnit(t) ||
		!strings.Contains(b.loaded[name], "--etcd-servers=http://a:2379") {
		t.Errorf("systemd has\n%s", b.loaded[name])
	}
}

// Machines that share an embedded store cannot move it, and a mesh whose store is a cluster shares none.
func TestMoveStoreOfSeveralMachines(t *testing.T) {
	b := newBed(t)
	b.record(t, func(s *state.State) { s.ControlPlane = true })
	if _, err := b.moveStore(t, StoreMove{Etcd: &plan.Etcd{Servers: []string{"http://a"}}}, nil); err == nil ||
		!strings.Contains(err.Error(), "share an embedded store: keel reset --yes on all but the first") {
		t.Errorf("%v", err)
	}
	s := state.State{Ports: map[string]int{plan.StorePort: 2380}}
	if !s.SharesStore() {
		t.Error("an embedded store is not shared")
	}
	if s.Etcd = (&plan.Etcd{Servers: []string{"http://a"}}); s.SharesStore() {
		t.Error("a cluster is shared")
	}
}

func (b *bed) recorded(t *testing.T) *state.State {
	t.Helper()
	s, err := state.Load(b.layout)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
