package hostport

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/hostports"
	"keelson.dev/kit/keptport"
	"keelson.dev/kit/nftrule"
)

// chainLeaving masquerades traffic whose replies would otherwise bypass the machine.
const chainLeaving = "postrouting"

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// add forwards the ports to the Pod, whose address is given with the network that it reaches without the machine.
// Every rule has its owner's name as a comment. The machine's kept ports stay closed.
func add(table, owner string, forwards []Forward, pod netip.Prefix, kept []keptport.Port) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening the firewall: %w", err)
	}
	own, ports := hostports.Open(conn, table, kept)
	leaving := conn.AddChain(&nftables.Chain{
		Name: chainLeaving, Table: own, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource})
	tag := userdata.AppendString(nil, userdata.TypeComment, owner)
	for _, f := range forwards {
		var match []expr.Any
		if f.Host.IsValid() {
			match = nftrule.Address(nftrule.Destination, expr.CmpOpEq, netip.PrefixFrom(f.Host, 32))
		}
		match = slices.Concat(match, nftrule.Port(f.Protocol, f.Port), nftrule.To(f.Target))
		conn.AddRule(&nftables.Rule{Table: own, Chain: ports, Exprs: match, UserData: tag})
	}
	// Replies to the machine's loopback or to the Pod's own network would not pass these rules again.
	for _, source := range []netip.Prefix{loopback, pod.Masked()} {
		conn.AddRule(&nftables.Rule{Table: own, Chain: leaving, UserData: tag, Exprs: slices.Concat(
			nftrule.Redirected(), nftrule.Address(nftrule.Source, expr.CmpOpEq, source),
			nftrule.Address(nftrule.Destination, expr.CmpOpEq, netip.PrefixFrom(pod.Addr(), 32)),
			nftrule.Masquerade())})
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("writing the firewall table %s: %w", table, err)
	}
	return forgetFlows(forwards)
}

// remove removes the rules of an owner. Missing rules are no error.
func remove(table, owner string) error {
	var err error
	for range 5 {
		// If another process has removed one of the rules meanwhile, nothing was removed here.
		if err = removeAll(table, owner); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("removing rules of the firewall table %s: %w", table, err)
	}
	return nil
}

func removeAll(table, owner string) error {
	conn, rules, err := owned(table, owner)
	if err != nil || len(rules) == 0 {
		return err
	}
	for _, rule := range rules {
		if err := conn.DelRule(rule); err != nil {
			return err
		}
	}
	return conn.Flush()
}

// owned returns the rules of an owner.
func owned(table, owner string) (*nftables.Conn, []*nftables.Rule, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, nil, err
	}
	var out []*nftables.Rule
	for _, name := range []string{hostports.Chain, chainLeaving} {
		own := hostports.Table(table)
		rules, err := conn.GetRules(own, &nftables.Chain{Name: name, Table: own})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for _, rule := range rules {
			if text, ok := userdata.GetString(rule.UserData, userdata.TypeComment); ok && text == owner {
				rule.Table = own
				out = append(out, rule)
			}
		}
	}
	return conn, out, nil
}

// forgetFlows makes the kernel apply the rules again to existing flows to the ports. Only UDP needs it: the kernel
// sees no end of its flows.
func forgetFlows(forwards []Forward) error {
	var filters []netlink.CustomConntrackFilter
	for _, f := range forwards {
		if f.Protocol != unix.IPPROTO_UDP {
			continue
		}
		filter := &netlink.ConntrackFilter{}
		err := errors.Join(filter.AddProtocol(f.Protocol), filter.AddPort(netlink.ConntrackOrigDstPort, f.Port))
		if err != nil {
			return fmt.Errorf("describing the flows to port %d: %w", f.Port, err)
		}
		filters = append(filters, filter)
	}
	if len(filters) == 0 {
		return nil
	}
	if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, filters...); err != nil {
		return fmt.Errorf("making the kernel forget flows to the ports: %w", err)
	}
	return nil
}
