package election

import (
	"math/rand/v2"
	"testing"
	"time"
)

// What a candidate does about a Lease that it has seen unchanged for a while, just before each bound and at it.
func TestPreference(t *testing.T) {
	const us, them = "us", "them"
	const short = time.Millisecond
	for _, test := range []struct {
		name      string
		fallback  bool
		lease     view
		unchanged time.Duration
		stretch   int
		stands    bool
		asks      bool
	}{
		{"nobody preferred has come", true, view{holder: them}, 0, 1, true, false},
		{"nobody preferred has come, and it leads", true, view{holder: us}, time.Hour, 1, true, false},
		{"it leads and was asked", true, view{holder: us, preferred: them}, 0, 1, false, false},
		{"it lost what it was asked for", true, view{holder: us, preferred: them}, 45*time.Second - short, 1, false,
			false},
		{"it lost what it was asked for, and nobody came", true, view{holder: us, preferred: them}, 45 * time.Second, 1,
			true, false},
		{"given up a moment ago", true, view{preferred: them}, 20*time.Second - short, 1, false, false},
		{"given up, and nobody came", true, view{preferred: them}, 20 * time.Second, 1, true, false},
		{"given up on a slow machine", true, view{preferred: them}, 80*time.Second - short, 4, false, false},
		{"given up on a slow machine, and nobody came", true, view{preferred: them}, 80 * time.Second, 4, true, false},
		{"led", true, view{holder: them, preferred: them}, 45*time.Second - short, 1, false, false},
		{"led by nobody any more", true, view{holder: them, preferred: them}, 45 * time.Second, 1, true, false},
		{"led on a slow machine", true, view{holder: them, preferred: them}, 90*time.Second - short, 2, false, false},
		{"led by nobody any more there", true, view{holder: them, preferred: them}, 90 * time.Second, 2, true, false},

		{"a fallback leads, and it has just begun", false, view{holder: them}, 10*time.Second - short, 1, true, false},
		{"a fallback leads, and it has settled", false, view{holder: them}, 10 * time.Second, 1, true, true},
		{"somebody has asked", false, view{holder: them, preferred: "others"}, time.Hour, 1, true, false},
		{"it leads", false, view{holder: us}, time.Hour, 1, true, false},
		{"nobody leads", false, view{}, time.Hour, 1, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			const begun = time.Hour
			c := &candidacy{identity: us, fallback: test.fallback, begun: begun, version: "1", since: begun,
				looked: begun + test.unchanged}
			test.lease.version = "1"
			c.see(test.lease, begun+test.unchanged, test.stretch)
			if got := c.mayStand(test.lease, test.stretch); got != test.stands {
				t.Errorf("may stand: %t, want %t", got, test.stands)
			}
			if got := c.asks(test.lease); got != test.asks {
				t.Errorf("asks: %t, want %t", got, test.asks)
			}
		})
	}
}

// Only what is looked at is seen not to change.
func TestTimeWithoutLooksDoesNotCount(t *testing.T) {
	for _, test := range []struct {
		name    string
		apart   time.Duration
		stretch int
		counts  bool
	}{
		{"as always", 5 * time.Second, 1, true},
		{"two looks failed", 15 * time.Second, 1, true},
		{"longer", 15*time.Second + 1, 1, false},
		{"on a slow machine", 60 * time.Second, 4, true},
		{"longer there", 60*time.Second + 1, 4, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			lease, now := view{holder: "them", preferred: "them", version: "1"}, time.Hour
			c := &candidacy{identity: "us", fallback: true}
			c.see(lease, now, test.stretch)
			for range 40 {
				now += test.apart
				c.see(lease, now, test.stretch)
			}
			if got := c.mayStand(lease, test.stretch); got != test.counts {
				t.Errorf("may stand after %v: %t, want %t", now-time.Hour, got, test.counts)
			}
		})
	}
}

// At any sequence of looks, a fallback does not take a Lease that a preferred candidate renews, and takes one that
// no candidate renews at the latest a look after absence. A Lease that it may take stays so until the Lease
// changes.
func TestPreferenceProperties(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := &candidacy{identity: "us", fallback: true}
		lease := view{holder: "them", preferred: "them", version: "0"}
		now, changed, may := time.Hour, time.Hour, false
		for step := range 300 {
			now += time.Duration(r.Int64N(int64(inattention)))
			if changes := r.IntN(20) == 0; changes {
				lease.version, changed, may = string(rune('a'+step)), now, false
				lease.holder = []string{"", "them", "others"}[r.IntN(3)]
			}
			c.see(lease, now, 1)
			least, most := absence, absence
			if lease.holder == "" {
				least, most = vacancy, vacancy
			}
			got := c.mayStand(lease, 1)
			switch unchanged := now - changed; {
			case got && unchanged < least:
				t.Fatalf("seed %d: takes what was written %v ago: %+v", seed, unchanged, lease)
			case !got && unchanged >= most+inattention:
				t.Fatalf("seed %d: leaves what was written %v ago: %+v", seed, unchanged, lease)
			case may && !got:
				t.Fatalf("seed %d: leaves what it might take a look before: %+v", seed, lease)
			}
			may = got
		}
	}
}
