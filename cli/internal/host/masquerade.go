package host

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
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

// SetNetworkRules writes the mesh's firewall table anew: what Pods send beyond the Pod range leaves under the machine's
// address, the apiserver's Service leads to the apiserver, and nothing that comes in by the mesh's bridges reaches the
// machine's loopback addresses. It speaks to the kernel itself; neither iptables nor nft is needed.
func SetNetworkRules(table string, pods netip.Prefix, service Service, bridgePrefix string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	if err := RemoveNetworkRules(table); err != nil {
		return err
	}
	own := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: table})
	leaving := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: own, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting,
		Priority: nftables.ChainPriorityNATSource,
	})
	conn.AddRule(&nftables.Rule{Table: own, Chain: leaving, Exprs: slices.Concat(
		nftrule.Address(nftrule.Source, expr.CmpOpEq, pods),
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
	guard := conn.AddChain(&nftables.Chain{
		Name: "guard", Table: own, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw,
	})
	conn.AddRule(&nftables.Rule{Table: own, Chain: guard, Exprs: slices.Concat(
		nftrule.FromInterfaces(bridgePrefix),
		nftrule.Address(nftrule.Destination, expr.CmpOpEq, netip.MustParsePrefix("127.0.0.0/8")), nftrule.Drop())})
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("writing the firewall table %s: %w", table, err)
	}
	return nil
}

// RemoveNetworkRules removes the tables of that name; one that is not there is no error.
func RemoveNetworkRules(table string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyINet} {
		conn.DelTable(&nftables.Table{Family: family, Name: table})
		if err := conn.Flush(); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the firewall table %s: %w", table, err)
		}
	}
	return nil
}
