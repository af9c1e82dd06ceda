package host

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/namespaces"
)

// innerLink is the name of a node's link in its own network namespace.
const innerLink = "eth0"

// NodeNetwork is the network of a node that is separate from the machine's, like that of a second machine.
type NodeNetwork struct {
	// File is the file on which the network namespace is mounted.
	File string
	// Link is the machine's end of the node's link; it is a port of Bridge.
	Link, Bridge string
	// Addresses are the node's, one of each family, Gateways the machine's on the bridge. Machine is another IPv4
	// address of the machine, which the node reaches as a neighbour: routes to the machine's Pods lead there.
	Addresses, Gateways []netip.Prefix
	Machine             netip.Addr
	// MTU is the machine's MTU; 0 means the bridge's.
	MTU int
}

// EnsureNode creates the missing parts of the node's network.
func EnsureNode(n NodeNetwork) error {
	namespace, err := ensureNamespace(n.File)
	if err != nil {
		return fmt.Errorf("making the network of %s: %w", filepath.Base(n.File), err)
	}
	defer func() { _ = namespace.Close() }()
	inside, err := netlink.NewHandleAt(namespace)
	if err != nil {
		return fmt.Errorf("opening the network of %s: %w", filepath.Base(n.File), err)
	}
	defer inside.Close()
	if err := n.connect(inside, namespace); err != nil {
		return fmt.Errorf("connecting the network of %s: %w", filepath.Base(n.File), err)
	}
	return nil
}

// connect creates the link between the machine and the node, and the node's routes.
func (n NodeNetwork) connect(inside *netlink.Handle, namespace netns.NsHandle) error {
	bridge, err := netlink.LinkByName(n.Bridge)
	if err != nil {
		return err
	}
	outer, err := netlink.LinkByName(n.Link)
	_, missing := inside.LinkByName(innerLink)
	if err == nil && missing != nil { // it belongs to a namespace that is gone
		if err = netlink.LinkDel(outer); err == nil {
			err = netlink.LinkNotFoundError{}
		}
	}
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		attributes := netlink.NewLinkAttrs()
		attributes.Name, attributes.MTU = n.Link, cmp.Or(n.MTU, bridge.Attrs().MTU)
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: innerLink,
			PeerMTU:       uint32(attributes.MTU),
			PeerNamespace: netlink.NsFd(namespace)}); err != nil {
			return err
		}
		outer, err = netlink.LinkByName(n.Link)
	}
	if err != nil {
		return err
	}
	// A Service of the machine may lead a node back to itself: if the kernel's firewall sees bridged packets,
	// these have to leave by the link by which they came.
	if err := errors.Join(netlink.LinkSetMaster(outer, bridge), netlink.LinkSetHairpin(outer, true),
		netlink.LinkSetUp(outer)); err != nil {
		return err
	}
	return n.furnish(inside)
}

func (n NodeNetwork) furnish(inside *netlink.Handle) error {
	loopback, err := inside.LinkByName("lo")
	if err != nil {
		return err
	}
	inner, err := inside.LinkByName(innerLink)
	if err != nil {
		return err
	}
	if err := errors.Join(inside.LinkSetUp(loopback), inside.LinkSetUp(inner)); err != nil {
		return err
	}
	for _, address := range n.Addresses {
		if err := inside.AddrReplace(inner, ownAddress(address)); err != nil {
			return err
		}
	}
	index := inner.Attrs().Index
	if n.Machine.IsValid() && !slices.ContainsFunc(n.Addresses, func(own netip.Prefix) bool {
		return own.Contains(n.Machine)
	}) {
		neighbour := &netlink.Route{LinkIndex: index, Dst: network(netip.PrefixFrom(n.Machine, n.Machine.BitLen())),
			Scope: netlink.SCOPE_LINK}
		if err := inside.RouteReplace(neighbour); err != nil {
			return err
		}
	}
	for _, gateway := range n.Gateways {
		everywhere := netip.PrefixFrom(gateway.Addr(), 0).Masked()
		if err := inside.RouteReplace(&netlink.Route{LinkIndex: index, Gw: gateway.Addr().AsSlice(),
			Dst: network(everywhere)}); err != nil {
			return err
		}
	}
	return nil
}

// ensureNamespace opens the network namespace that is mounted on a file, and creates a missing one.
func ensureNamespace(file string) (netns.NsHandle, error) {
	if !isNamespace(file) {
		if err := makeNamespace(file, "net", func() error { return unix.Unshare(unix.CLONE_NEWNET) }); err != nil {
			return netns.None(), err
		}
	}
	return netns.GetFromPath(file)
}

// PortFreeIn reports whether nothing listens on a port of any address in the network namespace that is mounted on
// a file. In a missing namespace nothing listens.
func PortFreeIn(file string, port int) bool {
	if !isNamespace(file) {
		return true
	}
	free := true // also if the namespace has just been removed
	_ = namespaces.Files{Net: file}.Do(func() error {
		free = PortFree(netip.IPv4Unspecified(), port)
		return nil
	})
	return free
}

// RemoveNode removes a node's network; a missing one is no error. The processes in it must have ended.
func RemoveNode(n NodeNetwork) error {
	return errors.Join(removeNamespace(n.File), RemoveLink(n.Link))
}

// ReserveRange makes the machine reject packets to unused addresses of a range instead of sending them out. The
// route shows other meshes that the range is taken.
func ReserveRange(prefix netip.Prefix) error {
	if err := netlink.RouteReplace(reservation(prefix)); err != nil {
		return fmt.Errorf("reserving the range %s: %w", prefix, err)
	}
	return nil
}

// ReleaseRange undoes ReserveRange; a missing route is no error.
func ReleaseRange(prefix netip.Prefix) error {
	if err := netlink.RouteDel(reservation(prefix)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("giving the range %s back: %w", prefix, err)
	}
	return nil
}

// reservationPriority ranks the reservation after every real route.
const reservationPriority = 1 << 20

func reservation(prefix netip.Prefix) *netlink.Route {
	return &netlink.Route{Dst: network(prefix), Type: unix.RTN_UNREACHABLE, Priority: reservationPriority}
}

func network(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}
