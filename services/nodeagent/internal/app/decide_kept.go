package app

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"keelson.dev/kit/keptport"
	"keelson.dev/services/nodeagent/internal/podnetwork"
)

// keptInput is what determines the ports that a node keeps.
type keptInput struct {
	// Named are the ports that the flag lists.
	Named []keptport.Port
	// Bind and Port are where the node API listens; no Port means nowhere. Health is where load balancers check the
	// node.
	Bind   string
	Port   int
	Health string
	// API is the API server's address in the client's configuration, NodeIPs are the node's own addresses.
	API     string
	NodeIPs []string
	// Tunnel means that nodes encapsulate the packets between their Pods.
	Tunnel bool
	// Resolvers are the machine's name servers.
	Resolvers []string
}

// decideKept lists the ports that the node keeps: for its own daemons, for the API server on this machine or, if it
// is elsewhere, its address there, and for Services.
func decideKept(in keptInput) []keptport.Port {
	kept := slices.Clone(in.Named)
	add := func(keeper, protocol string, at netip.AddrPort) {
		kept = append(kept, keptport.At(keeper, protocol, at))
	}
	if bind, err := netip.ParseAddr(in.Bind); err == nil && in.Port != 0 {
		add(name, keptport.TCP, netip.AddrPortFrom(bind, uint16(in.Port)))
	}
	if p, err := keptport.Parse(in.Health + "/tcp=service-health"); err == nil {
		kept = append(kept, p)
	}
	if at, ok := apiAddress(in.API); ok {
		here := at.Addr().IsLoopback() || slices.Contains(in.NodeIPs, at.Addr().String())
		if here {
			// Others reach it at other addresses of the machine.
			at = netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
		}
		add("apiserver", keptport.TCP, at)
		kept[len(kept)-1].Elsewhere = !here
	}
	if in.Tunnel {
		add("vxlan", keptport.UDP, netip.AddrPortFrom(netip.IPv4Unspecified(), podnetwork.VXLANPort))
	}
	for _, text := range in.Resolvers {
		if server, err := netip.ParseAddr(text); err == nil && server.IsLoopback() {
			const port = 53
			add("dns", keptport.UDP, netip.AddrPortFrom(server, port))
			add("dns", keptport.TCP, netip.AddrPortFrom(server, port))
		}
	}
	return append(kept, keptport.NodePorts()...)
}

// apiAddress returns the address in the host of a client's configuration; false if it is a name.
func apiAddress(host string) (netip.AddrPort, bool) {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	at, err := url.Parse(host)
	if err != nil {
		return netip.AddrPort{}, false
	}
	ip, err := netip.ParseAddr(at.Hostname())
	if err != nil {
		return netip.AddrPort{}, false
	}
	ports := map[string]uint16{"http": 80, "https": 443}
	port, err := strconv.ParseUint(at.Port(), 10, 16)
	if at.Port() == "" {
		port, err = uint64(ports[at.Scheme]), nil
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), err == nil
}
