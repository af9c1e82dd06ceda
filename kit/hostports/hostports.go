// Package hostports is the way into the firewall table in which the network plugin keelson-hostport leads ports of the
// machine to Pods. The plugin opens it when it adds the first port; the nodeagent sees to it that it stays closed to
// what the machine keeps, also for ports that were added before.
package hostports

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/keptport"
	"keelson.dev/kit/netdump"
	"keelson.dev/kit/nftrule"
)

// Chain holds a rule for each port. Packets to the machine's addresses pass it, except those to kept ports.
const Chain = "hostports"

// ways are the hooks that packets pass: one for packets that arrive, one for those that the machine itself sends.
var ways = []struct {
	name string
	hook *nftables.ChainHook
}{{"prerouting", nftables.ChainHookPrerouting}, {"output", nftables.ChainHookOutput}}

// Table is the table of a name. Its ports are those of IPv4 addresses.
func Table(name string) *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyIPv4, Name: name}
}

// Open adds to the connection's next transaction the table, or only new rules that lead into it. It returns the table
// and Chain.
func Open(conn *nftables.Conn, name string, kept []keptport.Port) (*nftables.Table, *nftables.Chain) {
	table := conn.AddTable(Table(name))
	ports := conn.AddChain(&nftables.Chain{Name: Chain, Table: table})
	rules := exceptions(kept)
	for _, way := range ways {
		chain := conn.AddChain(&nftables.Chain{Name: way.name, Table: table, Type: nftables.ChainTypeNAT,
			Hooknum: way.hook, Priority: nftables.ChainPriorityNATDest})
		conn.FlushChain(chain)
		for _, rule := range rules {
			conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule})
		}
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, UserData: mark(rules, kept),
			Exprs: append(nftrule.Local(), &expr.Verdict{Kind: expr.VerdictJump, Chain: Chain})})
	}
	return table, ports
}

// exceptions returns rules that let packets to kept ports bypass Chain. The ports of an IPv6 address need none.
func exceptions(kept []keptport.Port) [][]expr.Any {
	var rules [][]expr.Any
	for _, p := range kept {
		var match []expr.Any
		if p.Address.IsValid() {
			if !p.Address.Is4() {
				continue
			}
			match = nftrule.Address(nftrule.Destination, expr.CmpOpEq, netip.PrefixFrom(p.Address, 32))
		}
		rules = append(rules, append(append(match, nftrule.Ports(numberOf(p.Protocol), p.First, p.Last)...),
			&expr.Verdict{Kind: expr.VerdictReturn}))
	}
	return rules
}

func numberOf(protocol string) uint8 {
	switch protocol {
	case keptport.UDP:
		return unix.IPPROTO_UDP
	case keptport.SCTP:
		return unix.IPPROTO_SCTP
	}
	return unix.IPPROTO_TCP
}

// mark returns a comment for the last rule of a chain: the number of rules before it, and a hash of the kept
// ports.
func mark(rules [][]expr.Any, kept []keptport.Port) []byte {
	sum := sha256.Sum256(fmt.Append(nil, kept))
	return userdata.AppendString(nil, userdata.TypeComment, fmt.Sprintf("after %d of %s", len(rules),
		hex.EncodeToString(sum[:8])))
}

// Close closes an existing table to the kept ports, and makes the kernel forget the connections to these ports
// that it has led to Pods. It changes nothing if there is no table, or if the table is closed already.
func Close(name string, kept []keptport.Port) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	closed, err := isClosed(conn, name, kept)
	if err != nil || closed {
		return err
	}
	Open(conn, name, kept)
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("writing the firewall table %s: %w", name, err)
	}
	return forget(kept)
}

// isClosed reports whether there is nothing to do. It looks for the table by name, as a missing table would have no
// rules.
func isClosed(conn *nftables.Conn, name string, kept []keptport.Port) (bool, error) {
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return false, fmt.Errorf("listing the firewall tables: %w", err)
	}
	if !slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == name }) {
		return true, nil
	}
	table, exceptions := Table(name), exceptions(kept)
	for _, way := range ways {
		rules, err := conn.GetRules(table, &nftables.Chain{Name: way.name, Table: table})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("reading the firewall table %s: %w", name, err)
		}
		if n := len(exceptions); len(rules) != n+1 || !slices.Equal(rules[n].UserData, mark(exceptions, kept)) {
			return false, nil
		}
	}
	return true, nil
}

// forget removes the kernel's records of connections to the machine's kept ports that it leads to another address.
// It leaves those to the ports of Services.
func forget(kept []keptport.Port) error {
	addresses, err := netdump.Whole(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, unix.AF_INET) })
	if err != nil {
		return fmt.Errorf("reading the machine's addresses: %w", err)
	}
	taken := takenFlows{own: map[netip.Addr]bool{}}
	for _, address := range addresses {
		taken.own[addrOf(address.IP)] = true
	}
	for _, p := range kept {
		if !p.NodePorts {
			taken.kept = append(taken.kept, p)
		}
	}
	if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, taken); err != nil {
		return fmt.Errorf("making the kernel forget connections to kept ports: %w", err)
	}
	return nil
}

// takenFlows matches connections to ports of the machine that are kept and lead to another address.
type takenFlows struct {
	kept []keptport.Port
	own  map[netip.Addr]bool
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (t takenFlows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	to := addrOf(flow.Forward.DstIP)
	if addrOf(flow.Reverse.SrcIP) == to || !t.own[to] && !to.IsLoopback() {
		return false
	}
	return slices.ContainsFunc(t.kept, func(p keptport.Port) bool {
		return numberOf(p.Protocol) == flow.Forward.Protocol && p.Has(to, p.Protocol, flow.Forward.DstPort)
	})
}

func addrOf(ip net.IP) netip.Addr {
	address, _ := netip.AddrFromSlice(ip)
	return address.Unmap()
}
