package e2e

import (
	"strings"
	"testing"

	"keelson.dev/kit/nettest"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// dualPods requests a dual-stack mesh, and leaves the Service range and the network between the nodes to keel.
const dualPods = "--pod-cidr=10.231.0.0/16,fd00:75:231::/56"

// TestDualStack runs a mesh of both families whose nodes are on one segment. It takes no other ranges later, and no
// other mesh takes its own.
func TestDualStack(t *testing.T) {
	before := nettest.Standing(t)
	m := processes.New(t, 2, dualPods)
	scenario.DualStackTraffic(t, m)
	refused := func(want string, args ...string) {
		t.Helper()
		out, err := m.Keel(t.Context(), append([]string{"up"}, args...)...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("keel up %v: %v, want %q\n%s", args, err, want, out)
		}
	}
	refused("--pod-cidr: this data directory has used 10.231.0.0/16,fd00:75:231::/56 from its start",
		"--pod-range=10.231.0.0/16")
	_, services, _ := strings.Cut(processes.Argument(m.Of(t, mesh.APIServer)[0], "--service-cluster-ip-range"), ",")
	for flag, network := range map[string]string{"--pod-cidr": "fd00:75:231:7::/64", "--service-cidr": services} {
		refused(flag+": "+network+" overlaps ", "--data-dir="+t.TempDir(), "--nodes=0", flag+"=10.232.0.0/16,"+network)
	}
	takeDown(t, m, before)
}
