package linkaddress_test

import (
	"fmt"
	"testing"

	"keelson.dev/kit/linkaddress"
)

// Links of machines that were upgraded apart know each other by these.
func TestOf(t *testing.T) {
	if got := fmt.Sprintf("%x", linkaddress.Of("10.244.1.0/24")); got != "4eadf023dcf9" {
		t.Errorf("%s", got)
	}
	for i := range 1000 {
		if address := linkaddress.Of(fmt.Sprint(i)); address[0]&3 != 2 {
			t.Fatalf("%x is of a group, or given out by somebody else", address)
		}
	}
}
