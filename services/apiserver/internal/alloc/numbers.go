package alloc

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
)

const (
	// maxAddresses bounds the bit array of a range of addresses; those beyond are not given out.
	maxAddresses = 1 << 20
	minAddresses = 8
)

// ErrOutside is why a certain number cannot be taken.
var ErrOutside = errors.New("not in the valid range")

// IPs hands out the addresses of a prefix, except the network's own and, in IPv4, the broadcast address.
type IPs struct {
	*Range
	prefix netip.Prefix
}

// IPs returns the addresses of prefix.
func (s *Store) IPs(name string, prefix netip.Prefix) (*IPs, error) {
	prefix = prefix.Masked()
	size := addresses(prefix)
	if size < minAddresses {
		return nil, fmt.Errorf("the range %s is too small: it must have at least %d addresses", prefix, minAddresses)
	}
	return &IPs{Range: s.Range(name, prefix.String(), size), prefix: prefix}, nil
}

// Prefix is the range as it was configured.
func (i *IPs) Prefix() netip.Prefix { return i.prefix }

// Take takes one certain address.
func (i *IPs) Take(ctx context.Context, ip netip.Addr, dryRun bool) error {
	offset, ok := i.Offset(ip)
	if !ok {
		return ErrOutside
	}
	return i.Range.Take(ctx, offset, dryRun)
}

// TakeNext takes any free address.
func (i *IPs) TakeNext(ctx context.Context, dryRun bool) (netip.Addr, error) {
	offset, err := i.Range.TakeNext(ctx, dryRun)
	if err != nil {
		return netip.Addr{}, err
	}
	return i.at(offset), nil
}

// Offset is the place of ip in the range; ok is false if it is not given out.
func (i *IPs) Offset(ip netip.Addr) (offset int, ok bool) {
	if !i.prefix.Contains(ip) {
		return 0, false
	}
	distance := new(big.Int).Sub(number(ip), number(i.prefix.Addr()))
	if !distance.IsInt64() || distance.Int64() < 1 || distance.Int64() > int64(i.size) {
		return 0, false
	}
	return int(distance.Int64()) - 1, true
}

func (i *IPs) at(offset int) netip.Addr {
	sum := new(big.Int).Add(number(i.prefix.Addr()), big.NewInt(int64(offset)+1))
	ip, _ := netip.AddrFromSlice(sum.FillBytes(make([]byte, i.prefix.Addr().BitLen()/8)))
	return ip
}

func number(ip netip.Addr) *big.Int { return new(big.Int).SetBytes(ip.AsSlice()) }

func addresses(prefix netip.Prefix) int {
	hostBits := prefix.Addr().BitLen() - prefix.Bits()
	if hostBits > 20 {
		return maxAddresses
	}
	reserved := 1
	if prefix.Addr().Is4() {
		reserved = 2
	}
	return 1<<hostBits - reserved
}

// Ports hands out the ports from First to Last.
type Ports struct {
	*Range
	// First and Last are the bounds, both included.
	First, Last int
}

// Ports returns the ports from first to last.
func (s *Store) Ports(name string, first, last int) (*Ports, error) {
	if first < 1 || last > 65535 || first > last {
		return nil, fmt.Errorf("the port range %d-%d is not within 1-65535", first, last)
	}
	return &Ports{Range: s.Range(name, fmt.Sprintf("%d-%d", first, last), last-first+1), First: first, Last: last}, nil
}

// Take takes one certain port.
func (p *Ports) Take(ctx context.Context, port int, dryRun bool) error {
	offset, ok := p.Offset(port)
	if !ok {
		return ErrOutside
	}
	return p.Range.Take(ctx, offset, dryRun)
}

// TakeNext takes any free port.
func (p *Ports) TakeNext(ctx context.Context, dryRun bool) (int, error) {
	offset, err := p.Range.TakeNext(ctx, dryRun)
	return p.First + offset, err
}

// Offset is the place of port in the range; ok is false if it is not in it.
func (p *Ports) Offset(port int) (offset int, ok bool) {
	return port - p.First, port >= p.First && port <= p.Last
}
