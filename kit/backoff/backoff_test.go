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
