package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
)

// strangerBytes is how much a client without a certificate of the cluster may send until its request is answered,
// including its part of the TLS handshake: a token of the largest size fits, a header that takes much memory does not.
const strangerBytes = 32 << 10

// errTooMuch ends the connection of a client that sends more than strangerBytes.
var errTooMuch = errors.New("a request without a client certificate is too large")

// narrowListener accepts connections that read only so much from strangers.
type narrowListener struct{ net.Listener }

// Accept implements net.Listener.
func (l narrowListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &narrowConn{Conn: accepted}
	c.left.Store(strangerBytes)
	return c, nil
}

// narrowConn limits a stranger's connection until it is wide.
type narrowConn struct {
	net.Conn
	left atomic.Int64
	wide atomic.Bool
}

// Read implements net.Conn.
func (c *narrowConn) Read(into []byte) (int, error) {
	if c.wide.Load() {
		return c.Conn.Read(into)
	}
	left := c.left.Load()
	if left <= 0 {
		return 0, errTooMuch
	}
	n, err := c.Conn.Read(into[:min(int64(len(into)), left)])
	c.left.Add(-int64(n))
	return n, err
}

// admit lifts the limit of a connection as soon as it has shown a certificate that one of the authorities has
// signed.
func admit(config *tls.Config, authorities func() *x509.CertPool) {
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		own := config.Clone()
		own.GetConfigForClient = nil
		own.ClientCAs = authorities()
		if c, ok := hello.Conn.(*narrowConn); ok {
			own.VerifyConnection = func(state tls.ConnectionState) error {
				c.wide.Store(len(state.VerifiedChains) > 0)
				return nil
			}
		}
		return own, nil
	}
}

// renew resets the limit of a stranger's connection for the next request, and lifts it for a session, which only an
// authorized user can begin.
func renew(connection net.Conn, state http.ConnState) {
	secured, ok := connection.(*tls.Conn)
	if !ok {
		return
	}
	c, ok := secured.NetConn().(*narrowConn)
	switch {
	case !ok:
	case state == http.StateIdle:
		c.left.Store(strangerBytes)
	case state == http.StateHijacked:
		c.wide.Store(true)
	}
}
