package e2e

import (
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netns"

	"keelson.dev/kit/nftrule"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// fenced are the families of Services' addresses, in keel's order.
var fenced = []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6}

// fence lets nothing leave a node for an address of a Service. What the agent of the second node fails to lead to an
// endpoint would be led there by the first node, which is the machine that it goes through, and what that one does not
// lead anywhere would leave the machine. It stands until lift is called, or the test ends.
func fence(t *testing.T, m *processes.Mesh) (lift func()) {
	t.Helper()
	services := strings.Split(processes.Argument(m.Of(t, mesh.APIServer)[0], "--service-cluster-ip-range"), ",")
	inside, err := netns.GetFromPath(filepath.Join(m.DataDir, "netns", "node-2"))
	must(t, err)
	defer func() { _ = inside.Close() }()
	second, err := nftables.New(nftables.WithNetNSFd(int(inside)))
	must(t, err)
	machine, err := nftables.New()
	must(t, err)
	if t.Failed() {
		t.FailNow()
	}
	name := linkPrefix(m) + "fence"
	for _, node := range []*nftables.Conn{second, machine} {
		for i, text := range services {
			network, err := netip.ParsePrefix(text)
			must(t, err)
			table := node.AddTable(&nftables.Table{Family: fenced[i], Name: name})
			chain := node.AddChain(&nftables.Chain{Table: table, Name: "leaving", Type: nftables.ChainTypeFilter,
				Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityFilter})
			node.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(
				nftrule.Address(nftrule.Destination, expr.CmpOpEq, network), nftrule.Drop()...)})
		}
		must(t, node.Flush())
	}
	lift = sync.OnceFunc(func() {
		for i := range services {
			machine.DelTable(&nftables.Table{Family: fenced[i], Name: name})
		}
		must(t, machine.Flush())
	})
	t.Cleanup(lift)
	return lift
}
