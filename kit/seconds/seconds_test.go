package seconds

import (
	"math"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	for n, want := range map[int64]time.Duration{
		0: 0, 30: 30 * time.Second, -30: -30 * time.Second, math.MaxInt32: math.MaxInt32 * time.Second,
		math.MinInt32: math.MinInt32 * time.Second, Most - 1: (Most - 1) * time.Second, Most: Most * time.Second,
		Most + 1: Most * time.Second, math.MaxInt64: Most * time.Second, math.MinInt64: -Most * time.Second,
		math.MaxInt64/int64(time.Second) + 1: Most * time.Second, // the first that a duration cannot hold
	} {
		if got := Of(n); got != want {
			t.Errorf("%d seconds are %v, want %v", n, got, want)
		}
		if got := AtLeastNone(n); got != max(want, 0) {
			t.Errorf("%d seconds are %v, want %v", n, got, max(want, 0))
		}
	}
	if got := Of(int32(math.MaxInt32)); got != math.MaxInt32*time.Second {
		t.Errorf("the largest of 32 bits are %v", got)
	}
}

// What is added to the longest time does not overflow, and a time that it is added to can be written down.
func TestTheLongestHasRoom(t *testing.T) {
	longest := Of(int64(math.MaxInt64))
	if sum := longest + longest/2; sum < longest {
		t.Errorf("half as much again is %v", sum)
	}
	if _, err := time.Now().Add(longest).MarshalJSON(); err != nil {
		t.Error(err)
	}
}
