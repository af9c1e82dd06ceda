package job

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// JOB-053: the text of a set, and back.
func TestIndexesAsText(t *testing.T) {
	for _, c := range []struct {
		set  []int
		text string
	}{
		{nil, ""}, {[]int{0}, "0"}, {[]int{0, 1}, "0,1"}, {[]int{0, 1, 2}, "0-2"},
		{[]int{1, 3, 4, 5, 7}, "1,3-5,7"}, {[]int{7, 5, 3, 4, 1, 4}, "1,3-5,7"},
		{[]int{9, 10, 11, 12, 99}, "9-12,99"}, {[]int{0, 1, 3, 4}, "0,1,3,4"},
	} {
		set := indexes(nil).with(c.set...)
		if got := set.String(); got != c.text {
			t.Errorf("%v as text is %q, want %q", c.set, got, c.text)
		}
		if got := parseIndexes(c.text, 100); !reflect.DeepEqual(got, set) {
			t.Errorf("%q read is %v, want %v", c.text, got, set)
		}
	}
}

// JOB-164: what lies beyond the completions is not read; nor is what is no index.
func TestParseIndexes(t *testing.T) {
	for text, want := range map[string]string{
		"1,3-5,7": "1,3,4", "5-9": "", "3-9": "3,4", "0-4": "0-4", "5": "", "4": "4",
		"x,1": "1", "1-x,2": "2", "3-1": "", "-1": "", "1,,2": "1,2", "2,0-1,1-3": "0-3",
	} {
		if got := parseIndexes(text, 5).String(); got != want {
			t.Errorf("%q below 5 is %q, want %q", text, got, want)
		}
	}
}

// A set is what a map of the same numbers is.
func TestIndexesAreASet(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var a, b []int
		in := map[int]int{}
		for range random.IntN(12) {
			a, b = append(a, random.IntN(20)), append(b, random.IntN(20))
		}
		for _, i := range a {
			in[i] |= 1
		}
		for _, i := range b {
			in[i] |= 2
		}
		first, second := indexes(nil).with(a...), indexes(nil).with(b...)
		before := fmt.Sprint(first, second)
		union, common := first.union(second), 0
		var missing []int
		for i := range 22 {
			if union.has(i) != (in[i] > 0) || first.has(i) != (in[i]&1 > 0) {
				t.Fatalf("seed %d: %d in %v: %t, of %v: %t", seed, i, union, union.has(i), first, first.has(i))
			}
			if in[i] == 3 {
				common++
			}
			if in[i] == 0 && i < 15 {
				missing = append(missing, i)
			}
		}
		if union.count() != len(in) || first.common(second) != common {
			t.Fatalf("seed %d: %d in both and %d in common, want %d and %d", seed, union.count(),
				first.common(second), len(in), common)
		}
		n := random.IntN(10)
		if got := union.missing(15, n); !slices.Equal(got, missing[:min(n, len(missing))]) {
			t.Fatalf("seed %d: the first %d that %v lacks below 15 are %v of %v", seed, n, union, got, missing)
		}
		if fmt.Sprint(first, second) != before {
			t.Fatalf("seed %d: a set was changed", seed)
		}
	}
}

func TestIndexOf(t *testing.T) {
	for text, want := range map[string]int{"index=0": 0, "index=7": 7, "index=-1": noIndex, "index=x": noIndex,
		"index=": noIndex, "ready": noIndex} {
		if got := indexOf(newPod("a Running " + text)); got != want {
			t.Errorf("%s is index %d, want %d", text, got, want)
		}
	}
}
