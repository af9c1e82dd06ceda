package processes

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// resolver is the address of the DNS server in the tests' own network namespace; resolvConf is the file that names
// it.
const (
	resolver   = "192.0.2.2"
	resolvConf = "/etc/resolv.conf"
)

// resolveNothing makes this process answer every DNS query with "no such name", in place of the machine's
// resolvers, which cannot be reached.
func resolveNothing() error {
	conn, err := net.ListenPacket("udp", net.JoinHostPort(resolver, "53"))
	if err != nil {
		return fmt.Errorf("listening for questions about names: %w", err)
	}
	go answerNothing(conn)
	file, err := os.CreateTemp("", "resolv.conf")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // the mount stays
	if _, err := file.WriteString("nameserver " + resolver + "\n"); err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	if err := unix.Mount(file.Name(), resolvConf, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting the resolver's address: %w", err)
	}
	return nil
}

// answerNothing answers queries until the connection is closed. It ignores packets that are no query.
func answerNothing(conn net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if answer := noSuchName(buffer[:n]); answer != nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

// noSuchName is the answer to a packet, nil if that is no question.
func noSuchName(packet []byte) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(packet)
	if err != nil || header.Response {
		return nil
	}
	questions, err := parser.AllQuestions()
	if err != nil {
		return nil
	}
	answer, err := (&dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
			RCode: dnsmessage.RCodeNameError,
		},
		Questions: questions,
	}).Pack()
	if err != nil {
		return nil
	}
	return answer
}
