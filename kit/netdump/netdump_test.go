package netdump

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestWhole(t *testing.T) {
	interrupted, broken := fmt.Errorf("listing: %w", netlink.ErrDumpInterrupted), errors.New("broken")
	for name, row := range map[string]struct {
		// answers are the errors of the reads in their order; the last one stays.
		answers []error
		reads   int
		err     error
	}{
		"at once":              {[]error{nil}, 1, nil},
		"changed once":         {[]error{interrupted, nil}, 2, nil},
		"changed again":        {[]error{interrupted, interrupted, nil}, 3, nil},
		"changed all the time": {[]error{interrupted}, tries, interrupted},
		"broken":               {[]error{broken}, 1, broken},
		"changed, then broken": {[]error{interrupted, broken}, 2, broken},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			got, err := Whole(func() ([]int, error) {
				answer := row.answers[min(reads, len(row.answers)-1)]
				reads++
				return []int{reads}, answer
			})
			if reads != row.reads || !errors.Is(err, row.err) || len(got) != 1 || got[0] != row.reads {
				t.Errorf("%v, %v after %d reads; want %v after %d", got, err, reads, row.err, row.reads)
			}
		})
	}
}
