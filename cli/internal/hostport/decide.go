// Package hostport is the CNI plugin that forwards ports of the machine to Pods. The CNI project's plugin portmap
// runs the iptables or nft program; this plugin uses netlink.
package hostport

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"keelson.dev/kit/keptport"
)

// Mapping is one port mapping from the container runtime.
type Mapping struct {
	HostPort      int    `json:"hostPort"`
	ContainerPort int    `json:"containerPort"`
	Protocol      string `json:"protocol"`
	HostIP        string `json:"hostIP"`
}

// Forward is the forwarding of one port of the machine.
type Forward struct {
	// Host is the address of the machine; the zero Addr means all of its addresses.
	Host     netip.Addr
	Port     uint16
	Protocol uint8
	Target   netip.AddrPort
}

var protocols = map[string]uint8{
	"": unix.IPPROTO_TCP, "tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP, "sctp": unix.IPPROTO_SCTP,
}

// Forwards converts the mappings of a Pod, or returns an error for one that it cannot have: the ports in kept are
// the machine's own. A mapping of an IPv6 address is left out: Pods have IPv4 addresses only.
func Forwards(mappings []Mapping, pod netip.Addr, kept []keptport.Port) ([]Forward, error) {
	var out []Forward
	for i, m := range mappings {
		path := fmt.Sprintf("runtimeConfig.portMappings[%d]", i)
		if m.HostPort == 0 {
			continue
		}
		if m.HostPort < 1 || m.HostPort > 65535 {
			return nil, fmt.Errorf("%s.hostPort: %d must be from 1 to 65535", path, m.HostPort)
		}
		if m.ContainerPort < 1 || m.ContainerPort > 65535 {
			return nil, fmt.Errorf("%s.containerPort: %d must be from 1 to 65535", path, m.ContainerPort)
		}
		protocol, known := protocols[strings.ToLower(m.Protocol)]
		if !known {
			return nil, fmt.Errorf("%s.protocol: %q must be tcp, udp or sctp", path, m.Protocol)
		}
		host, err := hostAddress(m.HostIP)
		if err != nil {
			return nil, fmt.Errorf("%s.hostIP: %q is no IP address", path, m.HostIP)
		}
		if host.Is6() {
			continue
		}
		name := cmp.Or(strings.ToUpper(m.Protocol), keptport.TCP)
		if by, refused := keptport.Refusing(kept, host, name, uint16(m.HostPort)); refused {
			return nil, fmt.Errorf("%s.hostPort: %d/%s of the machine is kept for %s", path, m.HostPort, name,
				by.Keeper)
		}
		target := netip.AddrPortFrom(pod, uint16(m.ContainerPort))
		out = append(out, Forward{Host: host, Port: uint16(m.HostPort), Protocol: protocol, Target: target})
	}
	return out, nil
}

// hostAddress parses an address; it returns the zero Addr for all addresses of the machine.
func hostAddress(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, err
	}
	if address = address.Unmap(); address.Is4() && address.IsUnspecified() {
		return netip.Addr{}, nil
	}
	return address, nil
}
