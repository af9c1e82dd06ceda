package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestContainerdConfigStaysInItsFolder(t *testing.T) {
	node := Layout{Dir: "/d"}.Node("node-1")
	config := ContainerdConfig(ContainerdInput{Node: node, Programs: "/p", SysResource: true,
		Streams: netip.MustParseAddrPort("127.0.0.1:20009")})
	for _, want := range []string{
		"version = 3", `root = "/d/nodes/node-1/containerd/root"`, `state = "/d/nodes/node-1/containerd/state"`,
		`address = "/d/nodes/node-1/containerd.sock"`, `sandbox = "keelson.dev/pause:1"`, `BinaryName = "/p/runc"`,
		`Root = "/d/nodes/node-1/containerd/runc"`,
		`bin_dirs = ["/p/cni"]`, `conf_dir = "/d/nodes/node-1/cni/conf"`, "restrict_oom_score_adj = false",
		"[plugins.'io.containerd.grpc.v1.cri']\n  stream_server_address = \"127.0.0.1\"\n" +
			"  stream_server_port = \"20009\"",
		`config_path = "/etc/containerd/certs.d"`,
	} {
		if !strings.Contains(config, want) {
			t.Errorf("no %s in\n%s", want, config)
		}
	}
	for line := range strings.Lines(config) {
		if _, value, ok := strings.Cut(line, `= "/`); ok && !strings.HasPrefix(value, "d/") &&
			!strings.HasPrefix(value, "p/") && !strings.HasPrefix(line, "    config_path = ") {
			t.Errorf("outside of the node's folder: %s", line)
		}
	}
	without := ContainerdConfig(ContainerdInput{Node: node, Programs: "/p"})
	if !strings.Contains(without, "restrict_oom_score_adj = true") {
		t.Error("without the capability every sandbox would fail")
	}
}

// The runtime lets systemd manage the cgroups only if it is configured to.
func TestCgroupDriver(t *testing.T) {
	node := Layout{Dir: "/d"}.Node("node-1")
	for driver, want := range map[string]string{"cgroupfs": "SystemdCgroup = false", "systemd": "SystemdCgroup = true",
		"": "SystemdCgroup = false"} {
		if config := ContainerdConfig(ContainerdInput{Node: node, CgroupDriver: driver}); !strings.Contains(config,
			want) {
			t.Errorf("driver %q: no %s in\n%s", driver, want, config)
		}
	}
}

func TestImagesDue(t *testing.T) {
	got := ImagesDue([]string{"a", "b", "c"}, map[string]string{"a": "1", "b": "2", "c": "3"},
		map[string]string{"a": "1", "b": "old"})
	if !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("got %v", got)
	}
	if got := ImagesDue([]string{"a"}, map[string]string{"a": "1"}, nil); !slices.Equal(got, []string{"a"}) {
		t.Errorf("a new node is due %v", got)
	}
}

func TestMountsBelow(t *testing.T) {
	table := "short line\n22 1 0:1 / / rw - ext4 x rw\n" +
		"30 22 0:2 / /d/nodes/n/a rw - tmpfs x rw\n" +
		"31 30 0:3 / /d/nodes/n/a/with\\040space rw - tmpfs x rw\n" +
		"32 22 0:4 / /d/nodes-of-another/a rw - tmpfs x rw\n" +
		"33 22 0:5 / /d/nodes rw - tmpfs x rw\nshort line\n"
	want := []string{"/d/nodes/n/a/with space", "/d/nodes/n/a"}
	for _, dir := range []string{"/d/nodes", "/d/nodes/"} {
		if got := MountsBelow(table, dir); !slices.Equal(got, want) {
			t.Errorf("below %s: %q", dir, got)
		}
	}
	if got := MountsBelow(table, "/d"); len(got) != 4 || got[0] != "/d/nodes" {
		t.Errorf("below /d: %q", got)
	}
	if got := MountsBelow(table, "/d/nodes/n/a/with space"); len(got) != 0 {
		t.Errorf("the folder itself is not below it: %q", got)
	}
	stacked := "30 22 0:2 / /d/a\n31 22 0:2 / /d/b\n32 22 0:2 / /d/a\n33 22 0:2 /\n"
	if got := MountsBelow(stacked, "/d"); !slices.Equal(got, []string{"/d/a", "/d/b", "/d/a"}) {
		t.Errorf("one on top of another: %q", got)
	}
	odd := `30 22 0:2 / /d/tab\011line\012back\134slash\134040`
	if got := MountsBelow(odd, "/d"); !slices.Equal(got, []string{"/d/tab\tline\nback\\slash\\040"}) {
		t.Errorf("escapes: %q", got)
	}
}

func TestKeptNamespaces(t *testing.T) {
	table := "short line\n22 1 0:1 / / rw shared:1 - ext4 x rw\n" +
		"30 22 0:4 net:[4026532918] /run/netns/a rw shared:2 - nsfs nsfs rw\n" +
		"31 22 0:4 net:[4026532918] /d/with\\040space rw shared:2 master:1 - nsfs nsfs rw\n" +
		"32 22 0:5 / /nsfs rw - tmpfs nsfs rw\n33 22 0:4 /\n"
	if got := KeptNamespaces(table); !slices.Equal(got, []string{"/d/with space", "/run/netns/a"}) {
		t.Errorf("got %q", got)
	}
}

// Any name of the data directory stays a single string in the configuration.
func TestTOMLStrings(t *testing.T) {
	for text, want := range map[string]string{
		"/plain": `"/plain"`, `/with "quotes"`: `"/with \"quotes\""`, `/back\slash`: `"/back\\slash"`,
		"/line\nbreak": `"/line\nbreak"`, "/ünï": `"/ünï"`, "/bell\a": `"/bell\u0007"`, "": `""`,
	} {
		if got := toml(text); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
	config := ContainerdConfig(ContainerdInput{Node: Layout{Dir: `/d" # `}.Node("node-1"), Programs: "/p"})
	if want := `root = "/d\" # /nodes/node-1/containerd/root"`; !strings.Contains(config, want) {
		t.Errorf("no %s in\n%s", want, config)
	}
}
