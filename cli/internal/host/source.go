package host

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// SourceTowards returns the machine's address from which it reaches another address. Nothing is sent.
func SourceTowards(ctx context.Context, address string) (netip.Addr, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", address)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("looking for the way to %s: %w", address, err)
	}
	defer conn.Close()
	source, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("looking for the way to %s: %w", address, err)
	}
	return source.Addr().Unmap(), nil
}
