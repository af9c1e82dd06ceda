package podnetwork

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/linkaddress"
	"keelson.dev/kit/netdump"
	"keelson.dev/kit/podroute"
)

// defaultMTU is Ethernet's.
const defaultMTU = 1500

// kernel carries plans out by netlink, in the network namespace of the caller's thread.
type kernel struct {
	bridge, tunnel string
	vxlanID        int
	cluster        []netip.Prefix
}

// underlayMTU returns the MTU of the link with one of the addresses.
func underlayMTU(addresses []netip.Addr) int {
	all, err := netdump.Whole(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return defaultMTU
	}
	for _, entry := range all {
		address, _ := netip.AddrFromSlice(entry.IP)
		for _, own := range addresses {
			if own != address.Unmap() || address.IsLoopback() {
				continue
			}
			if link, err := netlink.LinkByIndex(entry.LinkIndex); err == nil {
				return link.Attrs().MTU
			}
		}
	}
	return defaultMTU
}

// apply makes the network what the plan says. What concerns only another node is a problem and no failure: Pods
// here have their network without it.
func (k kernel) apply(plan Plan) (problems []string, err error) {
	if err := k.ensureBridge(plan); err != nil {
		return nil, err
	}
	if err := k.ensureTunnel(plan); err != nil {
		return nil, err
	}
	return k.setRoutes(plan)
}

// ensureBridge creates the bridge of this node's Pods, with the gateways' addresses and no other addresses of the
// cluster.
func (k kernel) ensureBridge(plan Plan) error {
	bridge := &netlink.Bridge{LinkAttrs: named(k.bridge)}
	// A bridge without a hardware address of its own has the lowest one of its ports: as Pods come and go it would
	// change, and packets sent to the former address would be lost.
	own := linkaddress.Of(k.bridge)
	bridge.HardwareAddr = own[:]
	link, err := ensureLink(bridge, func(netlink.Link) bool { return true })
	if err != nil {
		return err
	}
	if err := errors.Join(k.trustAddresses(plan), switchOn(link)); err != nil {
		return err
	}
	if err := k.setAddresses(link, plan.Gateways); err != nil {
		return err
	}
	for _, gateway := range plan.Gateways {
		forwarding := "ipv4/ip_forward"
		if gateway.Addr().Is6() {
			forwarding = "ipv6/conf/all/forwarding"
		}
		if err := setSwitch(forwarding); err != nil {
			return fmt.Errorf("letting packets pass between Pods and the network: %w", err)
		}
	}
	return nil
}

// trustAddresses makes the bridge, before it is switched on, use its IPv6 addresses at once: no other link has
// them. While it checks for duplicates, it does not ask for the Pods' hardware addresses, and packets for them are
// lost.
func (k kernel) trustAddresses(plan Plan) error {
	if !slices.ContainsFunc(plan.Gateways, func(g netip.Prefix) bool { return g.Addr().Is6() }) {
		return nil
	}
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+k.bridge+"/accept_dad", []byte("0"), 0o644); err != nil {
		return fmt.Errorf("having the bridge %s use its addresses at once: %w", k.bridge, err)
	}
	return nil
}

// routeLoopback lets connections from the machine's loopback address pass the bridge, so that a port of the machine
// that leads to a Pod also works on 127.0.0.1. The firewall table keeps Pods from using the same way back.
func (k kernel) routeLoopback() error {
	if err := setSwitch("ipv4/conf/" + k.bridge + "/route_localnet"); err != nil {
		return fmt.Errorf("letting the loopback address pass the bridge %s: %w", k.bridge, err)
	}
	return nil
}

// setSwitch writes 1 unless the setting is 1 already.
func setSwitch(name string) error {
	file := "/proc/sys/net/" + name
	if now, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(now)) == "1" {
		return nil
	}
	return os.WriteFile(file, []byte("1"), 0o644)
}

// ensureLink returns the link of that name. It replaces a link that does not fit.
func ensureLink(want netlink.Link, fits func(netlink.Link) bool) (netlink.Link, error) {
	name := want.Attrs().Name
	link, err := netlink.LinkByName(name)
	if err == nil && (link.Type() != want.Type() || !fits(link)) {
		if err = netlink.LinkDel(link); err == nil {
			err = netlink.LinkNotFoundError{}
		}
	}
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		if err := netlink.LinkAdd(want); err != nil {
			return nil, fmt.Errorf("making the link %s: %w", name, err)
		}
		link, err = netlink.LinkByName(name)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the link %s: %w", name, err)
	}
	return link, nil
}

func switchOn(link netlink.Link) error {
	if link.Attrs().Flags&net.FlagUp != 0 {
		return nil
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("switching on the link %s: %w", link.Attrs().Name, err)
	}
	return nil
}

// setAddresses gives the link the addresses and removes other addresses of the cluster.
func (k kernel) setAddresses(link netlink.Link, want []netip.Prefix) error {
	have, err := netdump.Whole(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("listing the addresses of %s: %w", link.Attrs().Name, err)
	}
	there := map[netip.Prefix]bool{}
	for _, entry := range have {
		prefix := prefixOf(entry.IPNet)
		there[prefix] = true
		if !slices.Contains(want, prefix) && inside(netip.PrefixFrom(prefix.Addr(), prefix.Addr().BitLen()),
			k.cluster) {
			if err := netlink.AddrDel(link, &entry); err != nil {
				return fmt.Errorf("taking the address %s from %s: %w", prefix, link.Attrs().Name, err)
			}
		}
	}
	for _, prefix := range want {
		if there[prefix] {
			continue
		}
		if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: ipNet(prefix)}); err != nil {
			return fmt.Errorf("giving %s the address %s: %w", link.Attrs().Name, prefix, err)
		}
	}
	return nil
}

// setRoutes makes our routes into the cluster's ranges those of the plan. It leaves correct routes alone, so that
// no packet is lost meanwhile.
func (k kernel) setRoutes(plan Plan) (problems []string, err error) {
	have, err := k.routes()
	if err != nil {
		return nil, err
	}
	tunnel := 0
	if plan.Tunnel != nil {
		link, err := netlink.LinkByName(k.tunnel)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", k.tunnel, err)
		}
		tunnel = link.Attrs().Index
	}
	for _, route := range plan.Routes {
		now, there := have[route.Range]
		delete(have, route.Range)
		if there && now.Gw.Equal(route.Gateway.AsSlice()) && (tunnel == 0 || now.LinkIndex == tunnel) {
			continue
		}
		if err := k.setRoute(route, tunnel, there); err != nil {
			problems = append(problems, err.Error())
		}
	}
	for prefix, route := range have {
		if err := netlink.RouteDel(&route); err != nil && !errors.Is(err, unix.ESRCH) {
			problems = append(problems, fmt.Sprintf("removing the route to %s: %v", prefix, err))
		}
	}
	return problems, nil
}

func (k kernel) setRoute(route Route, tunnel int, there bool) error {
	entry := &netlink.Route{Dst: ipNet(route.Range), Gw: route.Gateway.AsSlice(), Protocol: podroute.Protocol}
	if tunnel != 0 {
		entry.LinkIndex, entry.Flags = tunnel, int(netlink.FLAG_ONLINK)
	}
	set := netlink.RouteAdd
	if there {
		set = netlink.RouteReplace
	}
	switch err := set(entry); {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("the machine has a route to %s already, which is not ours", route.Range)
	case errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH):
		return fmt.Errorf("%s, where the range %s is, is not on a segment of this node: --pod-network=vxlan reaches it",
			route.Gateway, route.Range)
	case err != nil:
		return fmt.Errorf("adding the route to %s by %s: %w", route.Range, route.Gateway, err)
	}
	return nil
}

// routes returns our routes into the cluster's ranges.
func (k kernel) routes() (map[netip.Prefix]netlink.Route, error) {
	all, err := netdump.Whole(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: podroute.Protocol},
			netlink.RT_FILTER_PROTOCOL)
	})
	if err != nil {
		return nil, fmt.Errorf("listing the routes: %w", err)
	}
	own := map[netip.Prefix]netlink.Route{}
	for _, route := range all {
		if route.Dst == nil || route.Type != unix.RTN_UNICAST {
			continue
		}
		if prefix := prefixOf(route.Dst); inside(prefix, k.cluster) {
			own[prefix] = route
		}
	}
	return own, nil
}

func named(name string) netlink.LinkAttrs {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	return attributes
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

func prefixOf(n *net.IPNet) netip.Prefix {
	address, _ := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(address.Unmap(), bits)
}
