package mesh

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// unexpected leaves out problems caused by other meshes of the machine, which may have the ports that clients
// expect.
func unexpected(problems []string) []string {
	return slices.DeleteFunc(slices.Clone(problems), func(problem string) bool {
		return strings.Contains(problem, "which clients expect of") || strings.Contains(problem, "needs, is taken by")
	})
}

// Preflight reports exactly what keel init reports, and neither changes anything.
func TestPreflightSaysWhatInitSays(t *testing.T) {
	for name, change := range map[string]func(*bed){
		"nothing":             func(*bed) {},
		"no programs":         func(b *bed) { b.options.Programs = "/nosuch" },
		"no images":           func(b *bed) { b.options.Images = "/nosuch" },
		"a name":              func(b *bed) { b.options.NodeName = "Vm_1" },
		"a record of keel up": func(b *bed) { b.record(b.t, func(s *state.State) { s.Units = false }) },
		"a worker":            func(b *bed) { b.record(b.t, func(s *state.State) { s.Server = "https://192.0.2.1" }) },
		"two things":          func(b *bed) { b.options.Images, b.options.NodeName = "/nosuch", "-" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			change(b)
			before := tree(t, b.layout.Dir) + tree(t, b.dir)
			found := Preflight(t.Context(), b.mesh(), b.options, ForInit)
			if after := tree(t, b.layout.Dir) + tree(t, b.dir); after != before || len(b.calls) > 0 {
				t.Errorf("it changed\n%s\nto\n%s\nand called %v", before, after, b.calls)
			}
			if name == "nothing" {
				if len(found.Problems) > 0 {
					t.Errorf("got %q", found.Problems)
				}
				b.mustInit(t)
				for _, warning := range found.Warnings {
					if !strings.Contains(b.out.String(), "    "+warning+"\n") {
						t.Errorf("keel init does not say %q:\n%s", warning, b.out.String())
					}
				}
				return
			}
			var unfit *UnfitError
			if err := b.init(t); !errors.As(err, &unfit) || !slices.Equal(unfit.Problems, found.Problems) ||
				len(found.Problems) == 0 {
				t.Errorf("preflight says %q and keel init %v", found.Problems, err)
			}
		})
	}
}

// Before a machine has joined, Preflight examines it without its mesh; afterwards it does as keel join does.
func TestPreflightOfAWorker(t *testing.T) {
	b := newJoinBed(t)
	look := func() []string { return Preflight(t.Context(), b.mesh(), b.options, ForJoin).Problems }
	if got := look(); len(got) > 0 {
		t.Errorf("before it joins: %q", got)
	}
	if err := os.Remove(b.layout.State()); err != nil {
		t.Fatal(err)
	}
	if got := unexpected(look()); len(got) > 0 {
		t.Errorf("of a new machine: %q", got)
	}
	programs := b.options.Programs
	b.options.Programs, b.options.NodeName = "/nosuch", "Vm_1"
	if got := unexpected(
		look(),
	); len(got) != 2 ||
		!strings.HasPrefix(got[0], "--programs: /nosuch lacks keelson-nodeagent,") ||
		!strings.HasPrefix(got[1], "--node-name: ") {
		t.Errorf("of one that lacks all: %q", got)
	}
	b = newJoinBed(t)
	b.mustJoin(t)
	if got := look(); len(got) > 0 {
		t.Errorf("after it has joined: %q", got)
	}
	b.options.Programs = programs
	b.record(t, func(s *state.State) { s.Server = "" })
	if got := look(); len(got) != 1 || !strings.Contains(got[0], "holds a mesh of this machine's own") {
		t.Errorf("of a machine with a mesh: %q", got)
	}
}

// keel up leaves a mesh of units alone, whether systemd or keel runs them.
func TestPreflightOfUp(t *testing.T) {
	b := newBed(t)
	m := b.mesh()
	m.Units = nil
	b.options.Nodes = KeepNodes
	if got := Preflight(t.Context(), m, b.options, ForUp).Problems; len(got) != 1 ||
		!strings.Contains(got[0], " runs the mesh in "+b.layout.Dir) {
		t.Errorf("of a mesh of keel init: %q", got)
	}
	if err := os.Remove(b.layout.State()); err != nil {
		t.Fatal(err)
	}
	if got := Preflight(t.Context(), m, b.options, ForUp).Problems; len(got) > 0 {
		t.Errorf("of a new mesh: %q", got)
	}
	b.options.Images = "/nosuch"
	if got := Preflight(
		t.Context(),
		m,
		b.options,
		ForUp,
	).Problems; len(got) != 1 ||
		!strings.HasPrefix(got[0], "--images: ") {
		t.Errorf("without images: %q", got)
	}
}

// The archives need room only until a node has imported one.
func TestUnstoredArchives(t *testing.T) {
	file := t.TempDir() + "/a.tar"
	must(t, os.WriteFile(file, make([]byte, 1000), 0o600))
	archives := []string{file, file, "/nosuch"}
	for want, kept := range map[uint64]*state.State{2000: {Nodes: []state.Node{{Name: "vm"}}},
		0: {Nodes: []state.Node{{Name: "vm", Images: map[string]string{"a": "b"}}}}} {
		if got := unstored(archives, kept); got != want {
			t.Errorf("%+v: %d, want %d", kept.Nodes, got, want)
		}
	}
}

// Preflight examines the disk of the future data directory, and the modules that this kernel reports.
func TestLookAtTheMachine(t *testing.T) {
	below, err := host.Disk(t.TempDir() + "/not/there")
	at, err2 := host.Disk(t.TempDir())
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if below.Bytes != at.Bytes || below.Bytes == 0 || below.BytesFree > below.Bytes {
		t.Errorf("a folder that is not there has %+v, one that is has %+v", below, at)
	}
	for name, state := range host.Modules(plan.ModuleNames()) {
		if state == "" {
			t.Errorf("nothing is said of %s", name)
		}
	}
	if got := host.Modules([]string{"no_such_module"})["no_such_module"]; got == plan.ModuleThere ||
		got == plan.ModuleLoadable {
		t.Errorf("a module that nobody has is %s", got)
	}
}
