package httpproxy

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	dialTimeout = 10 * time.Second
	idleTimeout = 90 * time.Second
)

// NewTransport reaches what users run. It shows no certificate and, as the signers of theirs are not known, takes any.
// Each address is checked when it is dialled, after names were looked up.
func NewTransport() http.RoundTripper {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout,
		Control: func(_, address string, _ syscall.RawConn) error { return CheckAddress(address) }}
	return utilnet.SetOldTransportDefaults(&http.Transport{
		DialContext:     dialer.DialContext,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // Anybody may sign for a Pod.
		IdleConnTimeout: idleTimeout,
		Proxy:           func(*http.Request) (*url.URL, error) { return nil, nil },
	})
}

// CheckAddress refuses to reach the machine of the apiserver by an address that only it has, and its link, where clouds
// keep their secrets.
func CheckAddress(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("handing a request on to %s: %w", address, err)
	}
	if ip := at.Addr().Unmap(); ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() {
		return fmt.Errorf("no request is handed on to %s: it is an address of the apiserver's own machine or link",
			at.Addr())
	}
	return nil
}
