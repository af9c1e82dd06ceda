package volumes

import "testing"

// The score is the mean over classes of the ratio of requested to available storage: of volumes that are there or, if
// none is, of the storage that is known.
func TestScore(t *testing.T) {
	percent := func(requested, capacity int64) int64 { return 100 * min(requested, capacity) / capacity }
	made := func(class string, size, capacity int64) Pick {
		return Pick{Need: &Need{class: class, size: size, Tracked: true}, capacity: capacity}
	}
	found := func(class string, size, capacity int64) Pick {
		return Pick{Need: &Need{class: class, size: size, Tracked: true}, Volume: &Volume{size: capacity}}
	}
	for name, test := range map[string]struct {
		picks []Pick
		want  int64
	}{
		"nothing":                    {nil, 0},
		"one":                        {[]Pick{made("a", 1, 4)}, 25},
		"two of a class":             {[]Pick{made("a", 1, 4), made("a", 3, 4)}, 50},
		"two classes":                {[]Pick{made("a", 1, 4), made("b", 3, 4)}, 50},
		"half a point counts as one": {[]Pick{made("a", 1, 4), made("b", 26, 100)}, 26},
		"less than half does not":    {[]Pick{made("a", 25, 100), made("b", 25, 100), made("c", 26, 100)}, 25},
		"no capacity is known":       {[]Pick{made("a", 1, 0)}, 100},
		"nothing is tracked":         {[]Pick{{Need: &Need{class: "a", size: 1}}}, 0},
		"what is not tracked":        {[]Pick{{Need: &Need{class: "a", size: 1}}, made("b", 1, 4)}, 25},
		"a volume that is there":     {[]Pick{found("a", 1, 2)}, 50},
		"beside one that is there":   {[]Pick{found("a", 1, 2), made("b", 1, 100)}, 50},
		"in one class":               {[]Pick{found("a", 1, 2), made("a", 1, 100)}, 50},
	} {
		if got := (Plan{Picks: test.picks}).Score(percent); got != test.want {
			t.Errorf("%s: score %d, want %d", name, got, test.want)
		}
	}
}
