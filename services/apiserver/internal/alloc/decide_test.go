package alloc

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// No offset is given out twice, all are, and the band comes last.
func TestPickGivesEachOffsetOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 8, 15, 16, 17, 100, 1000} {
		var taken bitmap
		reserved := band(size)
		var order []int
		for {
			offset, found := pick(taken, size, reserved, r.IntN(size))
			if !found {
				break
			}
			if offset < 0 || offset >= size || taken.has(offset) {
				t.Fatalf("size %d: gave out %d, taken %v", size, offset, order)
			}
			before := slices.Clone(taken)
			taken = taken.with(offset)
			if before.has(offset) || !taken.has(offset) || taken.count() != before.count()+1 {
				t.Fatalf("size %d: marking %d changed something else", size, offset)
			}
			order = append(order, offset)
		}
		if len(order) != size {
			t.Errorf("size %d: only %d were given out", size, len(order))
		}
		for i, offset := range order {
			if inBand := i >= size-reserved; inBand != (offset < reserved) {
				t.Errorf("size %d: number %d given out is %d, the band has %d", size, i, offset, reserved)
			}
		}
		if released := taken.without(order[0]); released.has(order[0]) || !taken.has(order[0]) {
			t.Errorf("size %d: releasing is wrong, or changed its input", size)
		}
	}
}

// The store holds one bit for each offset up to the last that was taken, and releasing what is not there changes
// nothing.
func TestBitmapIsSmall(t *testing.T) {
	for offset, octets := range map[int]int{0: 1, 7: 1, 8: 2, 15: 2, 16: 3, 65533: 8192} {
		taken := bitmap{}.with(offset)
		if len(taken) != octets || taken.count() != 1 || taken.has(offset+1) || offset > 0 && taken.has(offset-1) {
			t.Errorf("taking %d makes %d octets with %d bits, want %d with 1", offset, len(taken), taken.count(),
				octets)
		}
		if again := taken.with(0); len(again) != octets || !again.has(0) || !again.has(offset) {
			t.Errorf("taking 0 beside %d makes %d octets, want %d", offset, len(again), octets)
		}
	}
	if free := (bitmap{}).without(9); len(free) != 0 {
		t.Errorf("releasing what was never taken makes %v", free)
	}
}

func TestBand(t *testing.T) {
	for size, want := range map[int]int{8: 0, 15: 0, 16: 16, 254: 16, 1024: 64, 65534: 256} {
		if got := band(size); got != want {
			t.Errorf("band of %d is %d, want %d", size, got, want)
		}
	}
}

func TestAudit(t *testing.T) {
	taken := bitmap{}.with(1).with(2).with(3)
	used := map[int]bool{1: true, 7: true}
	var idle map[int]int
	for pass := 1; pass <= 3; pass++ {
		lost, leaked, next := audit(taken, 16, used, idle)
		if !slices.Equal(lost, []int{7}) {
			t.Fatalf("pass %d: lost %v", pass, lost)
		}
		if last := pass == 3; last != slices.Equal(leaked, []int{2, 3}) || !last && len(leaked) > 0 {
			t.Fatalf("pass %d: leaked %v", pass, leaked)
		}
		idle = next
	}
	// One sighting in between restarts the count.
	_, _, idle = audit(taken, 16, used, map[int]int{2: 2, 3: 2})
	_, leaked, _ := audit(taken, 16, map[int]bool{1: true, 2: true, 3: true}, map[int]int{2: 2, 3: 2})
	if len(leaked) > 0 || len(idle) > 0 {
		t.Errorf("leaked %v, idle %v", leaked, idle)
	}
}

func TestPorts(t *testing.T) {
	var s Store
	ports, err := s.Ports("test", 30000, 32767)
	if err != nil || ports.size != 2768 {
		t.Fatalf("%+v, %v", ports, err)
	}
	for port, want := range map[int]bool{29999: false, 30000: true, 32767: true, 32768: false} {
		if _, ok := ports.Offset(port); ok != want {
			t.Errorf("port %d: %v", port, ok)
		}
	}
	for _, bounds := range [][2]int{{0, 10}, {10, 9}, {10, 70000}} {
		if _, err := s.Ports("test", bounds[0], bounds[1]); err == nil {
			t.Errorf("range %v is accepted", bounds)
		}
	}
}
