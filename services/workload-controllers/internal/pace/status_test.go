package pace

import (
	"testing"
	"time"
)

// A status waits 100 microseconds for each Pod, and no longer than a second.
func TestStatusDue(t *testing.T) {
	written := time.Unix(1_700_000_000, 0)
	for pods, want := range map[int32]time.Duration{0: 0, 1: 100 * time.Microsecond, 9_999: 999_900 * time.Microsecond,
		10_000: time.Second, 10_001: time.Second, 1_000_000: time.Second} {
		if got := StatusDue(written, pods).Sub(written); got != want {
			t.Errorf("with %d Pods after %v, want %v", pods, got, want)
		}
	}
}

func TestEarlier(t *testing.T) {
	never, soon, late := time.Time{}, time.Unix(1_700_000_000, 0), time.Unix(1_700_000_001, 0)
	for _, c := range []struct{ a, b, want time.Time }{
		{never, never, never}, {never, late, late}, {late, never, late}, {soon, late, soon}, {late, soon, soon},
		{soon, soon, soon},
	} {
		if got := Earlier(c.a, c.b); !got.Equal(c.want) {
			t.Errorf("of %v and %v %v is the earlier, want %v", c.a, c.b, got, c.want)
		}
	}
}
