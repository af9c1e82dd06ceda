package plan

import "net/netip"

// Who answers for names: a CoreDNS that keel installs, or nobody, until the operator brings somebody.
const (
	CoreDNS = "coredns"
	NoDNS   = "none"
)

// DefaultDomain is that of the cluster's names where nothing is said.
const DefaultDomain = "cluster.local"

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
