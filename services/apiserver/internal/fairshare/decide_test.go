package fairshare

import "testing"

// One client gets a quarter of what others leave, and somebody new always something of what is left.
func TestFits(t *testing.T) {
	for _, row := range []struct {
		total, others, mine, more int64
		want                      bool
	}{
		{64, 0, 0, 1, true},
		{64, 0, 15, 1, true},
		{64, 0, 16, 1, false},
		{64, 0, 0, 16, true},
		{64, 0, 0, 17, false},
		{64, 16, 11, 1, true},
		{64, 16, 12, 1, false},
		{64, 60, 0, 1, true},
		{64, 61, 0, 1, false},
		{64, 64, 20, 0, true},
	} {
		if got := fits(row.total, row.others, row.mine, row.more); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
	taken := int64(0)
	for name := range 6 {
		mine := int64(0)
		for fits(64, taken, mine, 1) {
			mine++
		}
		if mine == 0 {
			t.Errorf("client %d gets nothing: six have %d", name, taken)
		}
		taken += mine
	}
}
