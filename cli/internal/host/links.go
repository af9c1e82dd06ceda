package host

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/netdump"
	"keelson.dev/kit/podroute"
)

// Routes lists the networks to which the machine has routes, including unreachable ones, except default routes,
// IPv6 link-local routes and those of a mesh: routes over links with the prefix ownLinks, the reservation of its
// Pod range, and routes to other nodes' parts of it. The Pod range of a new mesh is empty.
func Routes(ownLinks string, pods plan.Range) ([]netip.Prefix, error) {
	routes, err := listRoutes()
	if err != nil {
		return nil, err
	}
	own := map[int]bool{}
	if err := eachLink(ownLinks, func(link netlink.Link) error {
		own[link.Attrs().Index] = true
		return nil
	}); err != nil {
		return nil, err
	}
	var prefixes []netip.Prefix
	for _, route := range routes {
		to := destination(route)
		ours := own[route.LinkIndex] || slices.ContainsFunc(pods.Networks(), func(network netip.Prefix) bool {
			return reserves(route, network) || leadsToPods(route, network)
		})
		if to.Bits() > 0 && !ours && (!to.Addr().Is6() || !to.Addr().IsLinkLocalUnicast()) {
			prefixes = append(prefixes, to)
		}
	}
	return prefixes, nil
}

func listRoutes() ([]netlink.Route, error) {
	var all []netlink.Route
	for _, family := range families() {
		routes, err := netdump.Whole(func() ([]netlink.Route, error) { return netlink.RouteList(nil, family) })
		if err != nil {
			return nil, fmt.Errorf("listing the machine's routes: %w", err)
		}
		all = append(all, routes...)
	}
	return all, nil
}

// destination returns the network that a route leads to; 0.0.0.0/0 for a default route.
func destination(route netlink.Route) netip.Prefix {
	if route.Dst == nil {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	address, _ := netip.AddrFromSlice(route.Dst.IP)
	bits, _ := route.Dst.Mask.Size()
	return netip.PrefixFrom(address.Unmap(), bits).Masked()
}

// reserves reports whether ReserveRange has made the route for the range.
func reserves(route netlink.Route, pods netip.Prefix) bool {
	return route.Type == unix.RTN_UNREACHABLE && destination(route) == pods
}

// leadsToPods reports whether a route is a nodeagent's route to another node's part of the range.
func leadsToPods(route netlink.Route, pods netip.Prefix) bool {
	to := destination(route)
	return route.Protocol == podroute.Protocol && pods.IsValid() && pods.Bits() <= to.Bits() &&
		pods.Contains(to.Addr())
}

// RemovePodRoutes removes the routes to other nodes' parts of a range that nodeagents have left.
func RemovePodRoutes(pods netip.Prefix) error {
	routes, err := listRoutes()
	if err != nil {
		return err
	}
	var failed error
	for _, route := range routes {
		if !leadsToPods(route, pods) {
			continue
		}
		if err := netlink.RouteDel(&route); err != nil && !errors.Is(err, unix.ESRCH) {
			failed = errors.Join(failed, fmt.Errorf("removing the route to %s: %w", destination(route), err))
		}
	}
	return failed
}

// RemoveLink removes a link; a missing link is no error.
func RemoveLink(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("removing the link %s: %w", name, err)
	}
	return nil
}

// RemoveLinks removes all links of the machine with the name prefix, and with them the routes over them.
func RemoveLinks(prefix string) error {
	return eachLink(prefix, func(link netlink.Link) error { return RemoveLink(link.Attrs().Name) })
}

// eachLink calls do for every link with the name prefix; an empty prefix matches no link, so that it cannot mean
// all.
func eachLink(prefix string, do func(netlink.Link) error) error {
	links, err := netdump.Whole(netlink.LinkList)
	if err != nil {
		return fmt.Errorf("listing the machine's links: %w", err)
	}
	var failed error
	for _, link := range links {
		if prefix != "" && strings.HasPrefix(link.Attrs().Name, prefix) {
			failed = errors.Join(failed, do(link))
		}
	}
	return failed
}
