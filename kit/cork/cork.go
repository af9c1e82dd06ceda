// Package cork sends the small writes of a connection together. A request over HTTP/2 is a write of its headers and one
// of its body, the answer to it again; each write costs a system call, and the other end a wake-up, which together are
// most of what the connection costs. Here a write is only taken, and what was taken goes out when the goroutines that
// are ready have run: nothing waits for a clock.
//
//	cork.go  the connections of a listener and of a client
//	conn.go  one connection
package cork

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// Listener returns the listener with connections whose writes go together.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c), nil
}

// dialWait and keepAlive are those of client-go's connections.
const dialWait, keepAlive = 30 * time.Second, 30 * time.Second

// Client returns a copy of the configuration whose clients share one connection, the writes of which go together.
func Client(config *rest.Config) (*rest.Config, error) {
	corked := rest.CopyConfig(config)
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialWait, KeepAlive: keepAlive}).DialContext
	}
	corked.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return newConn(c), nil
	}
	// client-go shares no connection between clients that dial by a function, so the one transport is made here.
	shared, err := rest.TransportFor(corked)
	if err != nil {
		return nil, fmt.Errorf("building the connection: %w", err)
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return shared })
	return config, nil
}
