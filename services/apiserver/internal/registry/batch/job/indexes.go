package job

import (
	"fmt"
	"strconv"
	"strings"
)

// interval is a run of indexes, both ends included.
type interval struct{ first, last int32 }

// intervals are runs of indexes in increasing order.
type intervals []interval

// parseIndexes reads a list such as "1,3-5,7" of indexes below completions, each more than the one before.
func parseIndexes(text string, completions int32) (intervals, error) {
	if text == "" {
		return nil, nil
	}
	var parsed intervals
	previous := int32(-1)
	next := func(number string) (int32, error) {
		index, err := strconv.ParseInt(number, 10, 32)
		switch {
		case err != nil:
			return 0, fmt.Errorf("cannot convert string to integer for index: %q", number)
		case int32(index) >= completions:
			return 0, fmt.Errorf("too large index: %q", number)
		case int32(index) <= previous:
			return 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", previous, index)
		}
		previous = int32(index)
		return previous, nil
	}
	for _, part := range strings.Split(text, ",") {
		ends := strings.Split(part, "-")
		if len(ends) > 2 {
			return nil, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most "+
				"two parts separated by '-'", part)
		}
		first, err := next(ends[0])
		if err != nil {
			return nil, err
		}
		run := interval{first, first}
		if len(ends) == 2 {
			if run.last, err = next(ends[1]); err != nil {
				return nil, err
			}
		}
		parsed = append(parsed, run)
	}
	return parsed, nil
}

func (s intervals) count() int32 {
	var count int32
	for _, run := range s {
		count += run.last - run.first + 1
	}
	return count
}

// overlaps reports whether an index is in both lists.
func (s intervals) overlaps(other intervals) bool {
	for len(s) > 0 && len(other) > 0 {
		switch {
		case s[0].last < other[0].first:
			s = s[1:]
		case other[0].last < s[0].first:
			other = other[1:]
		default:
			return true
		}
	}
	return false
}
