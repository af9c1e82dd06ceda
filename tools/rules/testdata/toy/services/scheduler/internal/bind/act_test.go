package bind

import (
	"testing"
	"time"
)

func TestSleeps(t *testing.T) {
	time.Sleep(time.Millisecond)
	if time.Now().IsZero() {
		t.Fatal("the clock is free to use in a test")
	}
}
