package host

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Offsets and sizes in the IPv4 header.
const (
	sourceOffset      = 12
	destinationOffset = 16
	addressLength     = 4
)

// Service is the one Service that exists before anything balances load: the apiserver's own.
type Service struct {
	Address netip.Addr
	Port    uint16
	// Target is where connections to it go.
	Target netip.AddrPort
}

// SetNetworkRules writes the mesh's firewall table anew: what Pods send beyond the Pod range leaves under the machine's address, and
// the apiserver's Service leads to the apiserver. It speaks to the kernel itself; neither iptables nor nft is needed.
func SetNetworkRules(table string, pods netip.Prefix, service Service) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	if err := RemoveNetworkRules(table); err != nil {
		return err
	}
	own := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: table})
	leaving := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: own, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	rule := append(inRange(sourceOffset, pods, expr.CmpOpEq), inRange(destinationOffset, pods, expr.CmpOpNeq)...)
	conn.AddRule(&nftables.Rule{Table: own, Chain: leaving, Exprs: append(rule, &expr.Counter{}, &expr.Masq{})})
	for name, hook := range map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting, "output": nftables.ChainHookOutput} {
		arriving := conn.AddChain(&nftables.Chain{
			Name: name, Table: own, Type: nftables.ChainTypeNAT, Hooknum: hook, Priority: nftables.ChainPriorityNATDest,
		})
		conn.AddRule(&nftables.Rule{Table: own, Chain: arriving, Exprs: toTarget(service)})
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("writing the firewall table %s: %w", table, err)
	}
	return nil
}

// RemoveNetworkRules removes the table; one that is not there is no error.
func RemoveNetworkRules(table string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	conn.DelTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: table})
	if err := conn.Flush(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the firewall table %s: %w", table, err)
	}
	return nil
}

// inRange compares the network part of an address in the packet's header.
func inRange(offset uint32, prefix netip.Prefix, how expr.CmpOp) []expr.Any {
	mask := make([]byte, addressLength)
	for bit := range prefix.Bits() {
		mask[bit/8] |= 0x80 >> (bit % 8)
	}
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: addressLength},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: addressLength, Mask: mask, Xor: make([]byte, addressLength)},
		&expr.Cmp{Op: how, Register: 1, Data: prefix.Masked().Addr().AsSlice()},
	}
}

// toTarget sends TCP connections to a Service's address and port to its target.
func toTarget(service Service) []expr.Any {
	const portOffset, portLength = 2, 2
	return append(inRange(destinationOffset, netip.PrefixFrom(service.Address, 32), expr.CmpOpEq),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: portOffset, Len: portLength},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(service.Port)},
		&expr.Counter{},
		&expr.Immediate{Register: 1, Data: service.Target.Addr().AsSlice()},
		&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(service.Target.Port())},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2},
	)
}
