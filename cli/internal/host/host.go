// Package host examines the machine and makes the few changes to it that a mesh needs.
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/linkaddress"
	"keelson.dev/kit/netdump"
)

// capSysResource is the number of CAP_SYS_RESOURCE.
const capSysResource = 24

// HasSysResource reports whether this process may lower OOM scores (has CAP_SYS_RESOURCE).
func HasSysResource() (bool, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false, fmt.Errorf("reading the capabilities: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil {
				return false, fmt.Errorf("reading the capabilities: %w", err)
			}
			return bits&(1<<capSysResource) != 0, nil
		}
	}
	return false, errors.New("reading the capabilities: no CapEff in /proc/self/status")
}

// Addresses lists the machine's IPv4 addresses except loopback and link-local ones; the address of the default
// route comes first.
func Addresses() ([]netip.Addr, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing the machine's addresses: %w", err)
	}
	var addresses []netip.Addr
	for _, entry := range interfaces {
		prefix, err := netip.ParsePrefix(entry.String())
		if err == nil && prefix.Addr().Is4() && !prefix.Addr().IsLoopback() && !prefix.Addr().IsLinkLocalUnicast() {
			addresses = append(addresses, prefix.Addr())
		}
	}
	return outermostFirst(addresses), nil
}

// outermostFirst moves the source address of the default route to the front. Nothing is sent: the kernel only
// looks up the route.
func outermostFirst(addresses []netip.Addr) []netip.Addr {
	conn, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return addresses
	}
	defer conn.Close()
	source, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return addresses
	}
	sorted := []netip.Addr{}
	for _, address := range addresses {
		if address == source.Addr() {
			sorted = append([]netip.Addr{address}, sorted...)
		} else {
			sorted = append(sorted, address)
		}
	}
	return sorted
}

// PortFree reports whether nothing listens on a port of an address.
func PortFree(address netip.Addr, port int) bool {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(address, uint16(port)).String())
	if err != nil {
		return false
	}
	listener.Close()
	return true
}

// EnableForwarding enables packet forwarding between Pods and the network. It enables IPv6 forwarding only if Pods
// have IPv6, because that makes a machine ignore router advertisements.
func EnableForwarding(ipv6 bool) error {
	err := switchOn("/proc/sys/net/ipv4/ip_forward")
	if ipv6 {
		err = errors.Join(err, switchOn("/proc/sys/net/ipv6/conf/all/forwarding"))
	}
	return err
}

func switchOn(file string) error {
	now, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if strings.TrimSpace(string(now)) == "1" {
		return nil
	}
	if err := os.WriteFile(file, []byte("1"), 0o644); err != nil {
		return fmt.Errorf("switching packet forwarding on: %w", err)
	}
	return nil
}

// families returns the address families that the kernel supports.
func families() []int {
	if !exists("/proc/sys/net/ipv6") {
		return []int{netlink.FAMILY_V4}
	}
	return []int{netlink.FAMILY_V4, netlink.FAMILY_V6}
}

// HasIPv6 reports whether new links of the machine may have IPv6 addresses.
func HasIPv6() bool {
	off, err := os.ReadFile("/proc/sys/net/ipv6/conf/default/disable_ipv6")
	return err == nil && strings.TrimSpace(string(off)) == "0"
}

// EnsureBridge creates a bridge with addresses of the machine, each with the prefix length of its range, so that
// the machine's routes show the ranges as taken.
func EnsureBridge(name string, addresses ...netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = name
		// Otherwise it would have the lowest address of its ports, which changes as nodes are added.
		own := linkaddress.Of(name)
		attributes.HardwareAddr = own[:]
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil {
			return fmt.Errorf("making the bridge %s: %w", name, err)
		}
		link, err = netlink.LinkByName(name)
	}
	if err != nil {
		return fmt.Errorf("finding the bridge %s: %w", name, err)
	}
	for _, address := range addresses {
		if err := netlink.AddrReplace(link, ownAddress(address)); err != nil {
			return fmt.Errorf("giving %s the address %s: %w", name, address, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("switching the bridge %s on: %w", name, err)
	}
	return nil
}

// ownAddress returns an address that is usable at once, without duplicate detection: keel alone assigns addresses
// between the nodes.
func ownAddress(address netip.Prefix) *netlink.Addr {
	own := &netlink.Addr{IPNet: network(address)}
	if address.Addr().Is6() {
		own.Flags = unix.IFA_F_NODAD
	}
	return own
}

// MTU returns the MTU of the link with an address of the machine; 0 if it is unknown.
func MTU(address netip.Addr) int {
	all, err := netdump.Whole(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return 0
	}
	for _, entry := range all {
		if own, _ := netip.AddrFromSlice(entry.IP); own.Unmap() == address && !address.IsLoopback() {
			if link, err := netlink.LinkByIndex(entry.LinkIndex); err == nil {
				return link.Attrs().MTU
			}
		}
	}
	return 0
}

// SyncFilesystem waits until everything written to the filesystem of a folder is on its disk. The kernel continues
// the sync after ctx has ended.
func SyncFilesystem(ctx context.Context, dir string) error {
	synced := make(chan error, 1)
	go func() { synced <- syncFilesystem(dir) }()
	select {
	case err := <-synced:
		return err
	case <-ctx.Done():
		return fmt.Errorf("waiting for the disk of %s: %w", dir, ctx.Err())
	}
}

func syncFilesystem(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening %s to sync it: %w", dir, err)
	}
	defer folder.Close()
	if err := unix.Syncfs(int(folder.Fd())); err != nil {
		return fmt.Errorf("syncing the filesystem of %s: %w", dir, err)
	}
	return nil
}

// exists reports whether a path exists.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
