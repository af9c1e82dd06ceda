package plan

import (
	"fmt"
	"net/netip"
)

// Who answers for names: a CoreDNS that keel installs, or nobody. An address stands for what the operator brings.
const (
	CoreDNS = "coredns"
	NoDNS   = "none"
)

// DefaultDomain is that of the cluster's names where nothing is said.
const DefaultDomain = "cluster.local"

// CheckDNS says what is wrong with the answer to who answers for names.
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

// DNSServer is the address that Pods ask, the zero Addr if there is nobody.
func DNSServer(dns string, service netip.Prefix) netip.Addr {
	if dns == CoreDNS {
		return DNSAddress(service)
	}
	address, _ := netip.ParseAddr(dns)
	return address
}

// dnsIndex is the place in the Service range where clusters have their DNS.
const dnsIndex = 10

// DNSAddress is the tenth address of the Service range.
func DNSAddress(service netip.Prefix) netip.Addr {
	address := service.Masked().Addr()
	for range dnsIndex {
		address = address.Next()
	}
	return address
}
