package sctp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"
)

// SCTP by its number: a container has no list of protocols' names.
const (
	ip4 = "ip4:132"
	ip6 = "ip6:132"
)

const maxPacket = 1500

// Serve answers who begins an association at a port of any of this network's addresses, over IPv4 and IPv6, with a
// cookie that says so. It needs CAP_NET_RAW. Stop ends it.
func Serve(port uint16, cookie string) (stop func(), err error) {
	var conns []*net.IPConn
	stop = func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	for network, all := range map[string]net.IP{ip4: net.IPv4zero, ip6: net.IPv6unspecified} {
		conn, err := net.ListenIP(network, &net.IPAddr{IP: all})
		if err != nil {
			stop()
			return nil, err
		}
		conns = append(conns, conn)
		go answer(conn, port, cookie)
	}
	return stop, nil
}

func answer(conn *net.IPConn, port uint16, cookie string) {
	buffer := make([]byte, maxPacket)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		asked, err := decode(buffer[:n])
		if err != nil || asked.chunk != chunkInit || asked.to != port {
			continue
		}
		answer := packet{from: port, to: asked.from, tag: asked.own, own: rand.Uint32() | 1, chunk: chunkInitAck,
			cookie: cookie}
		_, _ = conn.WriteTo(answer.encode(), from)
	}
}

// Ask begins an association with HOST:PORT, of which HOST is an address, and returns the cookie of the answer. It needs
// CAP_NET_RAW.
func Ask(target string, limit time.Duration) (cookie string, err error) {
	to, err := netip.ParseAddrPort(target)
	if err != nil {
		return "", err
	}
	network := ip4
	if to.Addr().Is6() {
		network = ip6
	}
	conn, err := net.DialIP(network, nil, &net.IPAddr{IP: to.Addr().AsSlice(), Zone: to.Addr().Zone()})
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	const first, count = 32768, 28000 // ports that clients use
	asked := packet{from: uint16(first + rand.IntN(count)), to: to.Port(), own: rand.Uint32() | 1, chunk: chunkInit}
	if _, err := conn.Write(asked.encode()); err != nil {
		return "", err
	}
	for buffer := make([]byte, maxPacket); ; {
		n, _, err := conn.ReadFrom(buffer)
		if err != nil {
			return "", err
		}
		got, err := decode(buffer[:n])
		if err != nil || got.chunk != chunkInitAck || got.from != asked.to || got.to != asked.from {
			continue // others in this network ask too
		}
		if got.tag != asked.own {
			return "", fmt.Errorf("the answer has the tag %x, not %x", got.tag, asked.own)
		}
		return got.cookie, nil
	}
}
