package podnetwork

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/nftables"

	"keelson.dev/kit/hostports"
	"keelson.dev/kit/keptport"
)

// No Pod answers where the runtime is asked for sessions, from before the first session on: the port is closed, and
// the plugins get the runtime's current port. What is kept anyway is not kept twice.
func TestAnAgentKeepsTheStreams(t *testing.T) {
	sites := cluster(t, Routes, false)
	s := sites[0]
	named, err := keptport.Parse("127.0.0.1:20009/tcp=containerd.stream")
	must(t, err)
	s.net.CNI.PortTable, s.net.CNI.Kept = "ports", append(keptport.NodePorts(), named)
	s.Do(func() {
		conn, err := nftables.New()
		must(t, err)
		hostports.Open(conn, "ports", nil)
		must(t, conn.Flush())
	})
	for _, r := range []struct {
		at, told string
		rules    int
	}{
		{"127.0.0.1:20009", "", 5},
		{"127.0.0.1:41234", `"first": 41234`, 6},
		{"127.0.0.1:32000", `"first": 32000`, 6},
		{"0.0.0.0:41234", `"keeper": "runtime-streams",
          "protocol": "TCP",
          "first": 41234`, 6},
		{"127.0.0.1:20009", "", 5},
	} {
		s.Do(func() {
			must(t, s.net.KeepStreams(netip.MustParseAddrPort(r.at)))
			conn, err := nftables.New()
			must(t, err)
			table := hostports.Table("ports")
			rules, err := conn.GetRules(table, &nftables.Chain{Name: "output", Table: table})
			if must(t, err); len(rules) != r.rules {
				t.Errorf("%s: %d rules, want %d", r.at, len(rules), r.rules)
			}
		})
		s.sync()
		text, err := os.ReadFile(filepath.Join(s.net.ConfigDir, "10-keelson.conflist"))
		if must(t, err); strings.Contains(string(text), "runtime-streams") != (r.told != "") ||
			!strings.Contains(string(text), r.told) {
			t.Errorf("%s: plugins are told %s", r.at, text)
		}
	}
}
