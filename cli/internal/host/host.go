// Package host looks at the machine and changes the few things of it that a mesh needs.
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

// HasSysResource tells whether this process may lower the score that keeps the kernel from killing a process.
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

// Addresses lists the machine's own IPv4 addresses, loopback left out; the one of the default route comes first.
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

// outermostFirst moves the address that the machine talks from to the front. Nothing is sent: the kernel only looks the
// route up.
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

// PortFree tells whether nothing listens on a port of an address.
func PortFree(address netip.Addr, port int) bool {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(address, uint16(port)).String())
	if err != nil {
		return false
	}
	listener.Close()
	return true
}

// EnableForwarding lets packets pass between Pods and the network, those of IPv6 where Pods have it: it makes a machine
// ignore router advertisements.
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

// families are those of addresses that the kernel knows.
func families() []int {
	if !exists("/proc/sys/net/ipv6") {
		return []int{netlink.FAMILY_V4}
	}
	return []int{netlink.FAMILY_V4, netlink.FAMILY_V6}
}

// HasIPv6 tells whether new links of the machine may have addresses of IPv6.
func HasIPv6() bool {
	off, err := os.ReadFile("/proc/sys/net/ipv6/conf/default/disable_ipv6")
	return err == nil && strings.TrimSpace(string(off)) == "0"
}

// EnsureBridge makes a bridge with addresses of the machine, each with the length of its range, so that the ranges are
// taken from now on for everybody who asks.
func EnsureBridge(name string, addresses ...netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = name
		// The lowest one of its ports, which it would have otherwise, becomes another as nodes come.
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

// ownAddress is an address that is used at once: nobody else has one between the nodes.
func ownAddress(address netip.Prefix) *netlink.Addr {
	own := &netlink.Addr{IPNet: network(address)}
	if address.Addr().Is6() {
		own.Flags = unix.IFA_F_NODAD
	}
	return own
}

// MTU is what the link with an address of the machine carries at once; 0 where it cannot be told.
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

// SyncFilesystem waits until all that was written to the filesystem of a folder is on its disk. The kernel goes on with
// it after the end of ctx.
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

// exists tells whether a path is there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
