// Package gather reads what many watches bring a few times per second instead of as it comes. To wake a process up for
// a single event costs several times what the event does; those of some milliseconds together wake it up once. Watches
// have a connection of their own for it, so that no answer to a request waits.
//
//	decide.go  when something is left to gather (pure)
//	gather.go  the connection of watches
//	conn.go    how it is read
package gather

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// dialWait and keepAlive are those of client-go's connections.
const dialWait, keepAlive = 30 * time.Second, 30 * time.Second

// Watches returns a copy of the connection whose watches are read together. An event waits for others for no longer
// than the pause, and for none where nothing has come lately.
func Watches(config *rest.Config, pause time.Duration) (*rest.Config, error) {
	watching := rest.CopyConfig(config)
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialWait, KeepAlive: keepAlive}).DialContext
	}
	watching.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return newConn(c, pause), nil
	}
	watches, err := rest.TransportFor(watching)
	if err != nil {
		return nil, fmt.Errorf("building the connection of watches: %w", err)
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{next, watches} })
	return config, nil
}

// transport sends watches over one connection and all else over the other.
type transport struct{ others, watches http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.RawQuery, "watch=true") {
		return t.watches.RoundTrip(r)
	}
	return t.others.RoundTrip(r)
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.others }

var _ utilnet.RoundTripperWrapper = transport{}
