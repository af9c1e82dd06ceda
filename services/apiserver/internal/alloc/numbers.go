package alloc

import (
	"context"
	"errors"
	"fmt"
)

// ErrOutside is why a certain number cannot be taken.
var ErrOutside = errors.New("not in the valid range")

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
