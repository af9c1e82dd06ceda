// Package backoff computes exponential delays. It is pure: it holds no clock and no source of chance.
//
//keelson:decision
package backoff

import "time"

// Policy says how delays grow. The zero value never delays.
type Policy struct {
	// First is the delay after the first failure.
	First time.Duration
	// Max is the longest delay.
	Max time.Duration
}

// Delay returns how long to wait after the given number of failures in a row: 0 for none, First after one, doubled for
// each further one up to Max.
func (p Policy) Delay(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	delay := p.First
	for range failures - 1 {
		if delay > p.Max/2 {
			return p.Max
		}
		delay *= 2
	}
	return min(delay, p.Max)
}
