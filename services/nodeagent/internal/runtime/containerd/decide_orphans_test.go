package containerd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// SAF-197
func TestOrphans(t *testing.T) {
	now := time.Unix(100000, 0)
	long := now.Add(-10 * time.Minute)
	id := func(c string) string { return strings.Repeat(c, 64) }
	const here = "/node/state/io.containerd.runtime.v2.task/k8s.io/"
	recorded := map[string]bool{id("a"): true}
	for name, row := range map[string]struct {
		folder
		shared, orphan bool
	}{
		"of a container that is recorded":        {folder{id: id("a"), bundle: here + id("a")}, false, false},
		"of one that has just begun":             {folder{id: id("a"), since: now}, false, false},
		"of one that began long ago":             {folder{id: id("a")}, true, false},
		"of a container that is not":             {folder{id: id("b"), bundle: here + id("b")}, false, true},
		"the same, where folders are shared":     {folder{id: id("b"), bundle: here + id("b"), since: now}, true, true},
		"of another containerd":                  {folder{id: id("b"), bundle: "/run/" + id("b")}, true, false},
		"of another containerd all the same":     {folder{id: id("b"), bundle: "/run/" + id("b")}, false, false},
		"of another container's bundle":          {folder{id: id("b"), bundle: here + id("c")}, false, false},
		"below a bundle":                         {folder{id: id("b"), bundle: here + "x/" + id("b")}, false, false},
		"that runc had just made":                {folder{id: id("b"), since: now}, false, true},
		"that another's runc may be making":      {folder{id: id("b"), since: long.Add(time.Second)}, true, false},
		"that no runc is making any more":        {folder{id: id("b"), since: long}, true, true},
		"of the future":                          {folder{id: id("b"), since: now.Add(time.Hour)}, true, false},
		"of one that was not named by CRI":       {folder{id: "web", bundle: here + "web"}, false, false},
		"whose name is a flag":                   {folder{id: "--" + id("b")[2:]}, false, false},
		"whose name is too long":                 {folder{id: id("b") + "b"}, false, false},
		"whose name is hidden":                   {folder{id: "." + id("b")[1:]}, false, false},
		"of a bundle without a folder around it": {folder{id: id("b"), bundle: id("b")}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := orphans([]folder{row.folder}, recorded, []string{strings.TrimSuffix(here, "/")}, row.shared, now)
			if orphan := slices.Equal(got, []folder{row.folder}); orphan != row.orphan || !orphan && got != nil {
				t.Errorf("orphans are %v, want %v", got, row.orphan)
			}
		})
	}
}

func TestSetup(t *testing.T) {
	const runcV2 = "io.containerd.runc.v2"
	config := func(stateDir, runtimes string) string {
		return fmt.Sprintf(`{"containerd": {"runtimes": {%s}}, "stateDir": %q, "cni": {"binDirs": null}}`, runtimes,
			stateDir)
	}
	ociRuntime := func(kind, options string) string {
		return fmt.Sprintf(`%q: {"runtimeType": %q, "options": %s}`, kind+options, kind, options)
	}
	const stateDir = "/node/state/io.containerd.grpc.v1.cri"
	const bundles = "/node/state/io.containerd.runtime.v2.task/k8s.io"
	own := runc{program: "/opt/runc", root: "/node/runc/k8s.io"}
	for name, row := range map[string]struct {
		config string
		want   setup
		wrong  bool
	}{
		"its own folder": {config(stateDir, ociRuntime(runcV2, `{"BinaryName": "/opt/runc", "Root": "/node/runc"}`)),
			setup{[]runc{own}, bundles, ""}, false},
		"the folder of all": {config(stateDir, ociRuntime(runcV2, `null`)),
			setup{[]runc{{"runc", "/run/containerd/runc/k8s.io", true}}, bundles, ""}, false},
		"two names of one": {config(stateDir, ociRuntime(runcV2, `{"BinaryName": "/opt/runc", "Root": "/node/runc"}`)+","+
			ociRuntime(runcV2, `{"BinaryName": "/opt/runc", "Root": "/node/runc", "SystemdCgroup": true}`)),
			setup{[]runc{own}, bundles, ""}, false},
		"where it listens": {`{"stateDir": "/node/state/cri", "containerdEndpoint": "/node/containerd.sock"}`,
			setup{nil, "/node/state/io.containerd.runtime.v2.task/k8s.io", "/node/containerd.sock"}, false},
		"another runtime":        {config(stateDir, ociRuntime("io.containerd.kata.v2", `{}`)), setup{nil, bundles, ""}, false},
		"no containerd":          {"", setup{}, false},
		"nothing of containerd":  {`{"runtimes": 1}`, setup{}, false},
		"no state":               {config("", ociRuntime(runcV2, `{}`)), setup{}, false},
		"a state somewhere":      {config("state/cri", ociRuntime(runcV2, `{}`)), setup{}, false},
		"damaged":                {`{"containerd"`, setup{}, true},
		"of a form not known":    {`{"containerd": {"runtimes": ["runc"]}, "stateDir": "/a/b"}`, setup{}, true},
		"options not understood": {config(stateDir, ociRuntime(runcV2, `{"Root": 1}`)), setup{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readSetup(row.config)
			if (err != nil) != row.wrong {
				t.Fatalf("error %v, want one: %v", err, row.wrong)
			}
			if got.bundles != row.want.bundles || got.endpoint != row.want.endpoint ||
				!slices.Equal(got.runcs, row.want.runcs) {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}

// SAF-197
func TestShimOf(t *testing.T) {
	const program, here = "/opt/keelson/containerd-shim-runc-v2", "/node/containerd.sock"
	for line, want := range map[string]string{
		program + " -namespace k8s.io -id a1 -address " + here:               "a1",
		program + " -namespace k8s.io -id a1 -address " + here + " -debug":   "a1",
		program + " -namespace k8s.io -id a1 -address " + here + " start":    "",
		program + " -namespace k8s.io -id a1 -address " + here + " delete":   "",
		program + " -namespace k8s.io -id a1 -address " + here + " -debug x": "",
		program + " -namespace k8s.io -id a1 -address /run/other.sock":       "",
		program + " -namespace moby -id a1 -address " + here:                 "",
		program + " -namespace k8s.io -address " + here + " -id a1":          "",
		program + " -namespace k8s.io -id a1 -address":                       "",
		"/bin/sh -namespace k8s.io -id a1 -address " + here:                  "",
		"": "",
	} {
		if id, ok := shimOf(strings.Split(line, " "), here); ok != (want != "") || ok && id != want {
			t.Errorf("%q serves %q, %v; want %q", line, id, ok, want)
		}
	}
	if _, ok := shimOf(strings.Split(program+" -namespace k8s.io -id a1 -address ", " "), ""); ok {
		t.Error("a shim is told by an endpoint that is not known")
	}
}

// SAF-197
func TestOrphanShims(t *testing.T) {
	recorded, lost := shim{pid: 1, id: strings.Repeat("a", 64)}, shim{pid: 2, id: strings.Repeat("b", 64)}
	strange := shim{pid: 3, id: "web"}
	all := []shim{recorded, lost, strange}
	if got := orphanShims(all, map[string]bool{recorded.id: true}); !slices.Equal(got, []shim{lost}) {
		t.Errorf("orphans are %v, want %v", got, lost)
	}
	if !slices.Equal(all, []shim{recorded, lost, strange}) {
		t.Errorf("the input became %v", all)
	}
}
