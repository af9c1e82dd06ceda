package plan

import (
	"fmt"
	"net/netip"
)

// Values of --dns: keel installs CoreDNS, or the mesh has no DNS server. An address names a server of the
// operator.
const (
	CoreDNS = "coredns"
	NoDNS   = "none"
)

// DefaultDomain is the default cluster domain.
const DefaultDomain = "cluster.local"

// CheckDNS validates the value of --dns.
func CheckDNS(text string) error {
	if text == CoreDNS || text == NoDNS {
		return nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil || !address.Is4() || address.IsLoopback() || address.IsUnspecified() || address.IsMulticast() {
		return fmt.Errorf("--dns: %q must be coredns, none or an IPv4 address that Pods can ask", text)
	}
	return nil
}

// DNSServer returns the address of the DNS server that Pods use; the zero Addr without one.
func DNSServer(dns string, service netip.Prefix) netip.Addr {
	if dns == CoreDNS {
		return DNSAddress(service)
	}
	address, _ := netip.ParseAddr(dns)
	return address
}

// dnsIndex is the conventional index of the cluster DNS address in the Service range.
const dnsIndex = 10

// DNSAddress returns the tenth address of the Service range.
func DNSAddress(service netip.Prefix) netip.Addr {
	address := service.Masked().Addr()
	for range dnsIndex {
		address = address.Next()
	}
	return address
}
