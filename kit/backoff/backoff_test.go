package backoff

import (
	"math"
	"testing"
	"time"
)

func TestDelayDoublesUpToMax(t *testing.T) {
	p := Policy{First: 10 * time.Second, Max: 300 * time.Second}
	for failures, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} {
		if got := p.Delay(failures); got != want*time.Second {
			t.Errorf("after %d failures %v, want %v", failures, got, want*time.Second)
		}
	}
}

func TestDelayNeverOverflows(t *testing.T) {
	p := Policy{First: time.Nanosecond, Max: math.MaxInt64}
	for _, failures := range []int{-1, 62, 63, 64, 1000} {
		if got := p.Delay(failures); got < 0 || got > p.Max {
			t.Errorf("after %d failures %v", failures, got)
		}
	}
	if got := (Policy{}).Delay(5); got != 0 {
		t.Errorf("the zero policy delays %v", got)
	}
}

// Max is reached by doubling, not before, whether or not it is a double of First.
func TestDelayNearMax(t *testing.T) {
	for _, row := range []struct {
		first, max time.Duration
		failures   int
		want       time.Duration
	}{
		{1, 3, 1, 1}, {1, 3, 2, 2}, {1, 3, 3, 3},
		{1, 4, 2, 2}, {1, 4, 3, 4}, {1, 4, 4, 4},
		{5, 3, 1, 3}, {3, 3, 2, 3},
		{1, math.MaxInt64, 3, 4}, {1, math.MaxInt64, 63, 1 << 62}, {1, math.MaxInt64, 64, math.MaxInt64},
	} {
		if got := (Policy{First: row.first, Max: row.max}).Delay(row.failures); got != row.want {
			t.Errorf("%d doubled up to %d is %d after %d failures, want %d", row.first, row.max, got, row.failures,
				row.want)
		}
	}
}
