// Package keptport says which ports a machine keeps for its own daemons and for Services. The code that redirects
// packets of the machine, or lets Pods request its ports, reads one list of them. It is pure.
//
//keelson:decision
package keptport

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// The protocols, as the API writes them.
const (
	TCP  = "TCP"
	UDP  = "UDP"
	SCTP = "SCTP"
)

// The ports of nodes at which Services are reached, those of health checks among them.
const (
	FirstNodePort = 30000
	LastNodePort  = 32767
)

// Port is a port, or several in a row, on which a process of the machine answers.
type Port struct {
	// Keeper is the process, in one word.
	Keeper string `json:"keeper"`
	// Protocol is TCP, UDP or SCTP.
	Protocol string `json:"protocol"`
	// Address is the zero Addr for all of the machine's.
	Address netip.Addr `json:"address,omitzero"`
	// First and Last bound the numbers; both are of them.
	First uint16 `json:"first"`
	Last  uint16 `json:"last"`
	// Elsewhere says that the address is, as far as one knows, another machine's, by which this one reaches the keeper.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// NodePorts says that Services have the ports, and that they are closed to all others only.
	NodePorts bool `json:"nodePorts,omitempty"`
}

// At is the port of a keeper that listens there; the unspecified address is all of the machine's.
func At(keeper, protocol string, at netip.AddrPort) Port {
	p := Port{Keeper: keeper, Protocol: protocol, First: at.Port(), Last: at.Port()}
	if address := at.Addr().Unmap(); !address.IsUnspecified() {
		p.Address = address
	}
	return p
}

// NodePorts are the ports of Services at every address of a machine.
func NodePorts() []Port {
	var out []Port
	for _, protocol := range []string{TCP, UDP, SCTP} {
		out = append(out, Port{Keeper: "node-ports", Protocol: protocol, First: FirstNodePort, Last: LastNodePort,
			NodePorts: true})
	}
	return out
}

// Covers reports whether the port is kept at any address.
func (p Port) Covers(protocol string, number uint16) bool {
	return p.Protocol == protocol && p.First <= number && number <= p.Last
}

// Has reports whether the keeper gets what is sent to the port of one of the machine's addresses, or of its own.
func (p Port) Has(address netip.Addr, protocol string, number uint16) bool {
	return p.Covers(protocol, number) && (!p.Address.IsValid() || p.Address == address)
}

// AtPeers reports whether another machine of the kind presumably keeps the port, too, at every address that it has. A
// port that only the machine itself reaches is not kept at peers.
func (p Port) AtPeers() bool { return !p.Elsewhere && !p.Address.IsLoopback() }

// Refuses reports whether a Pod cannot have the port of the machine's address; the zero Addr stands for all addresses.
// A Pod that requests all gets the rest where only a loopback address, or another machine's, is kept.
func (p Port) Refuses(address netip.Addr, protocol string, number uint16) bool {
	switch {
	case !p.Covers(protocol, number):
		return false
	case !p.Address.IsValid() || address.IsValid():
		return p.Has(address, protocol, number)
	}
	return !p.Address.IsLoopback() && !p.Elsewhere
}

// Refusing returns the port that keeps a Pod from the one that it asks for.
func Refusing(kept []Port, address netip.Addr, protocol string, number uint16) (Port, bool) {
	for _, p := range kept {
		if p.Refuses(address, protocol, number) {
			return p, true
		}
	}
	return Port{}, false
}

// String is the form that Parse reads.
func (p Port) String() string {
	numbers := strconv.Itoa(int(p.First))
	if p.Last != p.First {
		numbers += "-" + strconv.Itoa(int(p.Last))
	}
	at := ""
	if p.Address.IsValid() {
		at = p.Address.String() + ":"
		if p.Address.Is6() {
			at = "[" + p.Address.String() + "]:"
		}
	}
	return at + numbers + "/" + strings.ToLower(p.Protocol) + "=" + p.Keeper
}

// form is how a port is written, an IPv6 address in brackets; nothing before the colon is every address.
const form = "[IP:]PORT[-PORT]/PROTOCOL=KEEPER"

// Parse reads what String writes. The error is one sentence about the text.
func Parse(text string) (Port, error) {
	where, keeper, _ := strings.Cut(text, "=")
	where, protocol, _ := strings.Cut(where, "/")
	p := Port{Keeper: keeper, Protocol: strings.ToUpper(protocol)}
	if keeper == "" || strings.ContainsAny(keeper, " \t\n") {
		return Port{}, fmt.Errorf("%q: KEEPER must be one word in %s", text, form)
	}
	if p.Protocol != TCP && p.Protocol != UDP && p.Protocol != SCTP {
		return Port{}, fmt.Errorf("%q: PROTOCOL must be tcp, udp or sctp in %s", text, form)
	}
	var right bool
	colon := strings.LastIndexByte(where, ':')
	if p.Address, right = parseAddress(where[:max(colon, 0)]); !right {
		return Port{}, fmt.Errorf("%q: IP must be an address, one of IPv6 in brackets, in %s", text, form)
	}
	if p.First, p.Last, right = parseNumbers(where[colon+1:]); !right {
		return Port{}, fmt.Errorf("%q: PORT must be from 1 to 65535, the second one not before the first, in %s", text,
			form)
	}
	return p, nil
}

// parseAddress returns the zero Addr for all addresses.
func parseAddress(text string) (netip.Addr, bool) {
	if text == "" {
		return netip.Addr{}, true
	}
	inside, bracketed := strings.CutPrefix(text, "[")
	address, err := netip.ParseAddr(strings.TrimSuffix(inside, "]"))
	if err != nil || address.Is6() != bracketed || bracketed != strings.HasSuffix(text, "]") || address.Zone() != "" {
		return netip.Addr{}, false
	}
	if address = address.Unmap(); address.IsUnspecified() {
		return netip.Addr{}, true
	}
	return address, true
}

func parseNumbers(text string) (low, high uint16, right bool) {
	first, last, several := strings.Cut(text, "-")
	if !several {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 16)
	to, errTo := strconv.ParseUint(last, 10, 16)
	return uint16(from), uint16(to), err == nil && errTo == nil && from > 0 && from <= to
}
