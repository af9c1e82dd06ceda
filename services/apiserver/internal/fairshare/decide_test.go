package fairshare

import "testing"

// One client gets a quarter of what others leave, and a new client always the least.
func TestRoom(t *testing.T) {
	for _, row := range []struct{ total, least, others, mine, want int64 }{
		{64, 0, 0, 0, 16},
		{64, 0, 0, 15, 1},
		{64, 0, 0, 16, 0},
		{64, 0, 16, 11, 1},
		{64, 0, 16, 12, 0},
		{64, 0, 60, 0, 1},
		{64, 0, 61, 0, 0},
		{64, 1, 61, 0, 1},
		{64, 1, 61, 1, 0},
		{64, 1, 100, 0, 1},
		{64, 5, 0, 0, 16},
		{64, 20, 0, 0, 20},
		{64, 20, 0, 20, 0},
	} {
		if got := room(row.total, row.least, row.others, row.mine); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
	taken := int64(0)
	for name := range 100 {
		mine := int64(0)
		for room(64, 1, taken, mine) > 0 {
			mine++
		}
		if mine == 0 {
			t.Errorf("client %d gets nothing: others have %d", name, taken)
		}
		taken += mine
	}
}
