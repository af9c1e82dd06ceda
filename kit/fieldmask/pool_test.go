package fieldmask

import (
	"fmt"
	"testing"
)

// The pool is bounded: beyond its bound it gathers again.
func TestThePoolIsBounded(t *testing.T) {
	p := NewPool[*int](10_000)
	share := func(key string) *int { return p.Share([]byte(key), func() *int { return new(int) }) }
	first := share("0")
	for i := range 9_999 {
		share(fmt.Sprint(i))
	}
	if share("0") != first {
		t.Error("forgotten before there are 10,000")
	}
	share("a")
	share("b")
	if share("0") == first || p.Len() != 2 {
		t.Errorf("%d are remembered", p.Len())
	}
}
