package processes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/netdump"
)

// uplink is the device by which a network namespace of its own has addresses and default routes, beyond its other end.
// Nothing listens there.
const uplink, beyond = "uplink", "beyond"

// gateways maps the gateways of the default routes to the machine's addresses in their networks. The ranges are
// reserved for documentation, so no other machine has them.
var gateways = map[string]string{"192.0.2.1": resolver + "/24", "2001:db8::1": "2001:db8::2/64"}

// Furnish gives new network and mount namespaces (make test-e2e runs each part of the tests in such) what a
// machine has: a loopback device that is up, addresses and default routes, a resolver that knows no name, and a
// folder for the sockets of containerd's shims that no other part of the tests sees. If the network has more than
// its loopback device, Furnish changes nothing.
func Furnish() error {
	links, err := netdump.Whole(netlink.LinkList)
	if err != nil {
		return fmt.Errorf("listing the devices: %w", err)
	}
	if len(links) > 1 {
		return nil
	}
	if err := checkMounts(); err != nil {
		return err
	}
	if err := furnishNetwork(); err != nil {
		return err
	}
	if err := resolveNothing(); err != nil {
		return err
	}
	return MountShims()
}

// MountShims has the mount namespace see no sockets of shims but its own.
func MountShims() error {
	if err := os.MkdirAll(shims, 0o711); err != nil {
		return fmt.Errorf("making the folder of shims: %w", err)
	}
	if err := unix.Mount("tmpfs", shims, "tmpfs", 0, "mode=0711"); err != nil {
		return fmt.Errorf("mounting %s: %w", shims, err)
	}
	return nil
}

// shims is where containerd's shims have their sockets.
const shims = "/run/containerd/s"

// checkMounts checks that the mount namespace is not the machine's, in which mounts would stay.
func checkMounts() error {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	if machines, err := os.Readlink("/proc/1/ns/mnt"); err == nil && machines == own {
		return errors.New("tests in a network namespace of their own need a mount namespace too: unshare --net --mount")
	}
	return nil
}

func furnishNetwork() error {
	// A machine that forwards has further routes of its own, which a mesh is not to be blamed for.
	for _, file := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"} {
		if err := os.WriteFile(file, []byte("1"), 0o644); err != nil {
			return fmt.Errorf("letting the network forward: %w", err)
		}
	}
	device := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: uplink}, PeerName: beyond}
	if err := netlink.LinkAdd(device); err != nil {
		return fmt.Errorf("making the device %s: %w", uplink, err)
	}
	links, err := netdump.Whole(netlink.LinkList)
	if err != nil {
		return fmt.Errorf("listing the devices: %w", err)
	}
	for _, link := range links {
		// Without link-local addresses, whose routes come a while after the device is up, nothing changes later.
		noAddress := filepath.Join("/proc/sys/net/ipv6/conf", link.Attrs().Name, "addr_gen_mode")
		if err := os.WriteFile(noAddress, []byte("1"), 0o644); err != nil {
			return fmt.Errorf("keeping the device %s from addresses of its own: %w", link.Attrs().Name, err)
		}
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
	return nil
}
