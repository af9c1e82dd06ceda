package processes

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// uplink is the device by which a network namespace of its own has addresses and default routes, beyond its other end.
// Nobody listens there.
const uplink, beyond = "uplink", "beyond"

// gateways are where the default routes lead, through addresses beside them that the machine has. The ranges are those
// of documentation, which nobody else has.
var gateways = map[string]string{"192.0.2.1": "192.0.2.2/24", "2001:db8::1": "2001:db8::2/64"}

// FurnishNetwork makes of new network and mount namespaces (make test-e2e runs each part of the tests in such) what a
// machine has: a loopback device that is up, addresses and default routes, and a resolver that knows no name. A network
// that has more than its loopback device is left as it is.
func FurnishNetwork() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("listing the devices: %w", err)
	}
	if len(links) > 1 {
		return nil
	}
	device := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: uplink}, PeerName: beyond}
	if err := netlink.LinkAdd(device); err != nil {
		return fmt.Errorf("making the device %s: %w", uplink, err)
	}
	links, err = netlink.LinkList()
	if err != nil {
		return fmt.Errorf("listing the devices: %w", err)
	}
	for _, link := range links {
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("bringing the device %s up: %w", link.Attrs().Name, err)
		}
	}
	for gateway, text := range gateways {
		address, err := netlink.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("reading the address %s: %w", text, err)
		}
		address.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(device, address); err != nil {
			return fmt.Errorf("giving %s the address %s: %w", uplink, text, err)
		}
		route := &netlink.Route{LinkIndex: device.Attrs().Index, Gw: net.ParseIP(gateway)}
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("leading the default route to %s: %w", gateway, err)
		}
	}
	return resolveNothing()
}
