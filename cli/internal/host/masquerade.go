package host

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/nftrule"
)

// Service is the one Service that exists before anything balances load: the apiserver's own.
type Service struct {
	Address netip.Addr
	Port    uint16
	// Target is where connections to it go.
	Target netip.AddrPort
}

// SetNetworkRules writes the mesh's firewall table anew: what the nodes between send beyond the mesh leaves under the
// machine's address, and the apiserver's Service leads to the apiserver. It speaks to the kernel itself; neither
// iptables nor nft is needed. The file names the network namespace, the empty one the machine's own.
func SetNetworkRules(file, table string, between, pods netip.Prefix, service Service) error {
	conn, done, err := firewall(file)
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	defer done()
	own := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: table}
	conn.AddTable(own) // or there might be none to delete
	conn.DelTable(own)
	conn.AddTable(own)
	leaving := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: own, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting,
		Priority: nftables.ChainPriorityNATSource,
	})
	conn.AddRule(&nftables.Rule{Table: own, Chain: leaving, Exprs: slices.Concat(
		nftrule.Address(nftrule.Source, expr.CmpOpEq, between),
		nftrule.Address(nftrule.Destination, expr.CmpOpNeq, between),
		nftrule.Address(nftrule.Destination, expr.CmpOpNeq, pods), nftrule.Masquerade())})
	for name, hook := range map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting,
		"output": nftables.ChainHookOutput} {
		arriving := conn.AddChain(&nftables.Chain{
			Name: name, Table: own, Type: nftables.ChainTypeNAT, Hooknum: hook, Priority: nftables.ChainPriorityNATDest,
		})
		conn.AddRule(&nftables.Rule{Table: own, Chain: arriving, Exprs: slices.Concat(
			nftrule.Address(nftrule.Destination, expr.CmpOpEq, netip.PrefixFrom(service.Address, 32)),
			nftrule.Port(unix.IPPROTO_TCP, service.Port), nftrule.To(service.Target))})
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("writing the firewall table %s: %w", table, err)
	}
	return nil
}

// firewall opens that of a network namespace.
func firewall(file string) (*nftables.Conn, func(), error) {
	if file == "" {
		conn, err := nftables.New()
		return conn, func() {}, err
	}
	namespace, err := netns.GetFromPath(file)
	if err != nil {
		return nil, nil, err
	}
	conn, err := nftables.New(nftables.WithNetNSFd(int(namespace)))
	return conn, func() { _ = namespace.Close() }, err
}

// RemoveTables removes the firewall tables of the machine whose names begin so.
func RemoveTables(prefixes ...string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	tables, err := conn.ListTables()
	if err != nil {
		return fmt.Errorf("listing the firewall tables: %w", err)
	}
	for _, table := range tables {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(table.Name, p) }) {
			conn.DelTable(table)
		}
	}
	if err := conn.Flush(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing firewall tables: %w", err)
	}
	return nil
}
