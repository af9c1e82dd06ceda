package requestbatch

import "testing"

// As many requests run as have room by the largest answer so far, and one where nothing else can make room.
func TestMayBegin(t *testing.T) {
	for _, row := range []struct {
		underWay, held, largest, room int64
		want                          bool
	}{
		{0, 0, 0, 100, true},
		{127, 0, 0, 100, true},  // answers have been ordinary
		{0, 0, 1000, 100, true}, // nothing frees room
		{0, 50, 50, 100, true},
		{0, 51, 50, 100, false}, // the client has something to read first
		{0, 100, 0, 100, true},
		{1, 0, 50, 100, true},
		{2, 0, 50, 100, false},
		{1, 0, 1000, 100, false},
	} {
		if got := mayBegin(row.underWay, row.held, row.largest, row.room); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}

func TestWeight(t *testing.T) {
	for length, want := range map[int64]int64{-1: 1000, 0: 10, 9: 10, 10: 10, 500: 500} {
		if got := weight(length, 10, 1000); got != want {
			t.Errorf("%d bytes weigh %d, want %d", length, got, want)
		}
	}
}
