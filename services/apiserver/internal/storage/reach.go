package storage

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"

	"keelson.dev/kit/daemon"
)

const (
	// reachLimit is how long a server may take to accept a connection.
	reachLimit = 10 * time.Second
	// greeting begins a connection of HTTP/2; a server that takes the client answers it.
	greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	// tlsAlert begins what a server with TLS may answer to a client without.
	tlsAlert = 0x15
)

// Reach checks that a server of the cluster accepts connections, with the TLS files. Dial only sees that none answers
// in time; the error of Reach is one sentence with the reason of each.
func (c Cluster) Reach(ctx context.Context) error {
	config, err := c.tls()
	if err != nil {
		return err
	}
	var reasons []string
	for _, server := range c.Servers {
		at, err := url.Parse(server)
		if err != nil || at.Host == "" { // a unix socket, or HOST:PORT, which Dial knows
			return nil
		}
		err = reach(ctx, at, config)
		if err == nil {
			return nil
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", server, err))
	}
	return daemon.UsageError(fmt.Errorf("--etcd-servers: no server can be used: %s", strings.Join(reasons, "; ")))
}

// tls is the client's configuration; nil: no TLS.
func (c Cluster) tls() (*tls.Config, error) {
	if c.CertFile == "" && c.KeyFile == "" && c.CAFile == "" {
		return nil, nil
	}
	config, err := transport.TLSInfo{CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.CAFile}.ClientConfig()
	if err != nil {
		return nil, daemon.UsageError(fmt.Errorf("--etcd-certfile, --etcd-keyfile or --etcd-cafile: %w", err))
	}
	return config, nil
}

func reach(ctx context.Context, server *url.URL, config *tls.Config) error {
	if server.Scheme == "https" && config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	address := server.Host
	if server.Port() == "" {
		address = net.JoinHostPort(server.Hostname(), "443")
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if server.Scheme == "https" {
		own := config.Clone()
		own.NextProtos = []string{"h2"}
		if own.ServerName == "" {
			own.ServerName = server.Hostname()
		}
		secure := tls.Client(conn, own)
		if err := secure.HandshakeContext(ctx); err != nil {
			return fmt.Errorf("the TLS handshake fails: %w", err)
		}
		conn = secure
	}
	return greet(conn)
}

// greet waits for an answer: whether a server takes the client's certificate is known only then.
func greet(conn net.Conn) error {
	if _, err := conn.Write([]byte(greeting)); err != nil {
		return err
	}
	first := make([]byte, 1)
	_, err := conn.Read(first)
	if err == nil && first[0] == tlsAlert {
		err = errors.New("a TLS alert")
	}
	if err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return errors.New("it does not answer in time")
		}
		return fmt.Errorf("it ends the connection (%w): if it asks for TLS, say https and give the TLS files", err)
	}
	return nil
}
