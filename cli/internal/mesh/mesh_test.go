package mesh

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

func TestNodeCount(t *testing.T) {
	for name, c := range map[string]struct {
		fresh      bool
		have, want int
		count      int
		refused    bool
	}{
		"a new mesh":               {true, 0, KeepNodes, 1, false},
		"a new control plane":      {true, 0, 0, 0, false},
		"again":                    {false, 3, KeepNodes, 3, false},
		"the control plane again":  {false, 0, KeepNodes, 0, false},
		"one more":                 {false, 1, 2, 2, false},
		"one less":                 {false, 2, 1, 0, true},
		"none in place of several": {false, 2, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodeCount(c.fresh, c.have, c.want)
			if got != c.count || (err != nil) != c.refused {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

func TestOpenWithoutAMesh(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nothing")
	if _, err := Open(dir, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(),
		dir+" holds no mesh: start one with keel up") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("looking made the folder")
	}
}

func TestDownWithoutAMesh(t *testing.T) {
	var out bytes.Buffer
	dir := filepath.Join(t.TempDir(), "nothing")
	if err := Down(t.Context(), &Mesh{Layout: plan.Layout{Dir: dir}, Out: &out}); err != nil ||
		!strings.Contains(out.String(), "nothing is up") {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("down made the folder")
	}
}

// Links and relative paths lead to one mesh.
func TestLayoutOfIsOnePerFolder(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, path := range []string{".", link, dir + "/../" + filepath.Base(dir)} {
		layout, err := LayoutOf(path)
		if err != nil || layout.Dir != dir {
			t.Errorf("%s: %v, %v", path, layout, err)
		}
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	err := checkPrograms(Options{Programs: t.TempDir(), Nodes: 1})
	if err == nil || !strings.Contains(err.Error(), "keelson-apiserver is missing") || !strings.Contains(err.Error(),
		"make build") {
		t.Errorf("got %v", err)
	}
}

// A daemon that ends at once fails the start with its last output; no process of it keeps running, and down clears
// the record.
func TestAFailingDaemonIsShown(t *testing.T) {
	programs := t.TempDir()
	for _, name := range []string{"keelson-apiserver", "keelson-scheduler", "keelson-workload-controllers",
		"keelson-podgc"} {
		script := "#!/bin/sh\necho the store is broken >&2\nexit 1\n"
		if err := os.WriteFile(filepath.Join(programs, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	m := &Mesh{Layout: plan.Layout{Dir: t.TempDir()}, Out: &out}
	err := Up(t.Context(), m, Options{
		Nodes: 0, BindAddress: netip.MustParseAddr("127.0.0.1"), Programs: programs, LogLevel: "info",
	})
	if err == nil {
		t.Fatal("it came up")
	}
	for _, want := range []string{"apiserver ended with exit status 1", "the store is broken",
		m.Layout.Log("apiserver")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if err := Down(t.Context(), &Mesh{Layout: m.Layout, Out: &out}); err != nil {
		t.Fatal(err)
	}
	recorded, err := state.Load(m.Layout)
	if err != nil || len(recorded.Processes) != 0 || recorded.Ports[plan.APIServer] == 0 {
		t.Errorf("after down the record is %+v, %v", recorded, err)
	}
}
