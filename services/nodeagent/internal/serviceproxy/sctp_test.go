package serviceproxy

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
)

// The chunks that begin an SCTP association.
const (
	chunkInit    = 1
	chunkInitAck = 2
)

// sctpPacket is a packet of SCTP with one chunk: not every kernel has SCTP sockets, but the firewall knows its packets.
func sctpPacket(from, to uint16, tag uint32, chunk byte) []byte {
	p := make([]byte, 32)
	binary.BigEndian.PutUint16(p[0:], from)
	binary.BigEndian.PutUint16(p[2:], to)
	binary.BigEndian.PutUint32(p[4:], tag)
	p[12], p[15] = chunk, 20
	binary.BigEndian.PutUint32(p[16:], 1) // the tag that answers must have
	binary.BigEndian.PutUint32(p[20:], 1<<16)
	p[25], p[27] = 1, 1 // streams out and in
	binary.LittleEndian.PutUint32(p[8:], crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)))
	return p
}

// listenSCTP receives SCTP packets in the network of the caller.
func listenSCTP(t *testing.T) *net.IPConn {
	t.Helper()
	conn, err := net.ListenIP("ip4:132", &net.IPAddr{IP: net.IPv4zero})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// answerSCTP lets a peer answer each association that begins at podPort.
func (p *peer) answerSCTP(t *testing.T, asked chan<- string) {
	p.Do(func() {
		conn := listenSCTP(t)
		go func() {
			packet := make([]byte, 100)
			for n, from, err := conn.ReadFrom(packet); err == nil; n, from, err = conn.ReadFrom(packet) {
				if n < 32 || packet[12] != chunkInit || binary.BigEndian.Uint16(packet[2:]) != podPort {
					continue
				}
				asked <- p.name
				_, _ = conn.WriteTo(sctpPacket(podPort, binary.BigEndian.Uint16(packet), 1, chunkInitAck), from)
			}
		}()
	})
}

// An SCTP association begins with an endpoint of the Service, whose answers come from the Service's address.
func TestSCTP(t *testing.T) {
	m := newMachine(t)
	s := newService(servicetest.WithNodePorts, func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "sctp", Protocol: corev1.ProtocolSCTP,
			Port: servicePort, NodePort: nodePort})
	})
	m.put(append(newSlices(s, m.a, m.remote), s)...)
	asked := make(chan string, 100)
	m.a.answerSCTP(t, asked)
	m.remote.answerSCTP(t, asked)
	for name, do := range map[string]func(func()){"b": m.b.Do, "stranger": m.stranger.Do} {
		for to, port := range map[netip.Addr]uint16{clusterIP: servicePort, nodeIP: nodePort} {
			answers := map[string]int{}
			do(func() {
				conn := listenSCTP(t)
				for i := range uint16(40) {
					own := 40000 + i
					_, err := conn.WriteTo(sctpPacket(own, port, 0, chunkInit), &net.IPAddr{IP: to.AsSlice()})
					must(t, err)
					_ = conn.SetReadDeadline(time.Now().Add(time.Second))
					packet := make([]byte, 100)
					n, from, err := conn.ReadFrom(packet)
					if err != nil || n != 32 || packet[12] != chunkInitAck || from.String() != to.String() ||
						binary.BigEndian.Uint16(packet) != port || binary.BigEndian.Uint16(packet[2:]) != own {
						t.Errorf("%s asks %s: %d bytes % x from %v, %v", name, to, n, packet[:n], from, err)
						return
					}
					answers[<-asked]++
				}
			})
			if answers["a"] < 5 || answers["remote"] < 5 {
				t.Errorf("%s asks %s: %v, want answers of both", name, to, answers)
			}
		}
	}
}

// A Service without endpoints refuses an association as the kernel does at an unused port of its own: by ICMP.
func TestSCTPWithoutEndpoints(t *testing.T) {
	m := newMachine(t)
	s := newService(servicetest.WithNodePorts, func(s *corev1.Service) {
		s.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolSCTP, Port: servicePort, NodePort: nodePort}}
	})
	m.put(append(newSlices(s), s)...)
	for name, do := range map[string]func(func()){"b": m.b.Do, "stranger": m.stranger.Do} {
		for to, port := range map[netip.Addr]uint16{clusterIP: servicePort, nodeIP: nodePort, clusterIP6: servicePort,
			nodeIP6: nodePort} {
			do(func() {
				if err := refusedSCTP(t, to, port); err != nil {
					t.Errorf("%s asks %s: %v", name, to, err)
				}
			})
		}
	}
}

// refusedSCTP asks for an association and waits for the ICMP message that says that the port is not there.
func refusedSCTP(t *testing.T, to netip.Addr, port uint16) error {
	sctp, icmp, local, refusal, header := "ip4:sctp", "ip4:icmp", net.IPv4zero, []byte{3, 3}, 20
	if to.Is6() {
		sctp, icmp, local, refusal, header = "ip6:sctp", "ip6:ipv6-icmp", net.IPv6zero, []byte{1, 4}, 40
	}
	sender, err := net.DialIP(sctp, nil, &net.IPAddr{IP: to.AsSlice()})
	must(t, err)
	defer func() { _ = sender.Close() }()
	receiver, err := net.ListenIP(icmp, &net.IPAddr{IP: local})
	must(t, err)
	defer func() { _ = receiver.Close() }()
	asked := sctpPacket(40000, port, 0, chunkInit)
	if _, err := sender.Write(asked); err != nil {
		return err
	}
	must(t, receiver.SetReadDeadline(time.Now().Add(time.Second)))
	for message := make([]byte, 200); ; {
		n, _, err := receiver.ReadFrom(message)
		if err != nil {
			return err
		}
		// The refused packet follows eight bytes of ICMP.
		if inner := 8 + header; n >= inner+8 && bytes.HasPrefix(message, refusal) &&
			bytes.Equal(message[inner:inner+8], asked[:8]) {
			return nil
		}
	}
}
