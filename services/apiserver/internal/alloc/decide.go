package alloc

import "math/bits"

// bitmap tells which offsets of a range are taken. A missing byte has no bit set, so the empty bitmap fits every range.
type bitmap []byte

func (b bitmap) has(offset int) bool {
	return offset/8 < len(b) && b[offset/8]&(1<<(offset%8)) != 0
}

// with returns a copy in which offset is taken.
func (b bitmap) with(offset int) bitmap {
	out := make(bitmap, max(len(b), offset/8+1))
	copy(out, b)
	out[offset/8] |= 1 << (offset % 8)
	return out
}

// without returns a copy in which offset is free.
func (b bitmap) without(offset int) bitmap {
	out := append(bitmap(nil), b...)
	if b.has(offset) {
		out[offset/8] &^= 1 << (offset % 8)
	}
	return out
}

func (b bitmap) count() int {
	taken := 0
	for _, octet := range b {
		taken += bits.OnesCount8(octet)
	}
	return taken
}

// pick chooses a free offset of a range of size offsets. The first band offsets are left to those who ask for a certain
// number, and are given out only when nothing else is free. The search begins at start, which spreads the numbers so
// that one just released is not given out again at once.
func pick(taken bitmap, size, band, start int) (offset int, found bool) {
	if offset, found = free(taken, band, size, start); found {
		return offset, true
	}
	return free(taken, 0, min(band, size), start)
}

func free(taken bitmap, from, to, start int) (offset int, found bool) {
	width := to - from
	for i := range width {
		candidate := from + (start+i)%width
		if !taken.has(candidate) {
			return candidate, true
		}
	}
	return 0, false
}

// band is how many offsets at the beginning of a range are left to those who ask for a certain number.
func band(size int) int {
	const smallest, largest, share = 16, 256, 16
	if size < smallest {
		return 0
	}
	return min(max(smallest, size/share), largest)
}

// audit compares the numbers that are taken with those in use. lost is in use but not taken: another object could get
// it. leaked is taken and was used neither now nor at the last audits: no object will ever release it. idle counts, for
// each unused offset, at how many audits it was so.
func audit(taken bitmap, size int, used map[int]bool, idle map[int]int) (lost, leaked []int, next map[int]int) {
	next = map[int]int{}
	for offset := range size {
		switch {
		case used[offset] && !taken.has(offset):
			lost = append(lost, offset)
		case used[offset] || !taken.has(offset):
		case idle[offset]+1 >= auditsBeforeLeak:
			leaked = append(leaked, offset)
		default:
			next[offset] = idle[offset] + 1
		}
	}
	return lost, leaked, next
}

// auditsBeforeLeak leaves time between taking an offset and storing the object that uses it.
const auditsBeforeLeak = 3
