package containerd

import (
	"slices"
	"strings"
	"testing"
)

func sets(ids ...string) map[string]bool {
	set := map[string]bool{}
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// SAF-197
func TestLostSandboxes(t *testing.T) {
	id := strings.Repeat("a", 64)
	for name, row := range map[string]struct {
		sandbox        string
		leased, listed bool
		lost           bool
	}{
		"runs":                                 {id, true, true, false},
		"is being made":                        {id, true, false, false},
		"is being removed, or was half made":   {id, false, true, false},
		"was given up":                         {id, false, false, true},
		"has a name that CRI does not give":    {"web", false, false, false},
		"has a name that is longer than those": {id + "a", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			known := func(is bool) map[string]bool {
				if is {
					return sets(row.sandbox)
				}
				return nil
			}
			got := lostSandboxes(sets(row.sandbox), known(row.leased), known(row.listed))
			if lost := slices.Equal(got, []string{row.sandbox}); lost != row.lost || !lost && len(got) > 0 {
				t.Errorf("lost are %v, want %v", got, row.lost)
			}
		})
	}
}

func TestWhichContainerdLeasesSandboxes(t *testing.T) {
	for version, want := range map[string]bool{"v2.0.0": true, "2.0.0-rc.1": true, "v2.3.7": true, "v10.1": true,
		"v1.7.99": false, "1.6.0": false, "v0.2": false, "": false, "2": false, "unknown": false,
		"99999999999999999999.1": false} {
		if got := leasesSandboxes(version); got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}
