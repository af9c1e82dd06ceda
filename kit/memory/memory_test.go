package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// restore gives the collector its settings back, which are the whole process's.
func restore(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

// percentNow reads the setting without changing it.
func percentNow() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

// What the user has said wins, by flag or in the environment of every Go program; without it both follow the live heap.
func TestWhoSetsTheCollector(t *testing.T) {
	for name, test := range map[string]struct {
		gogc, gomemlimit string
		options          Options
		adapts, follows  bool
		percent          int
		limit            int64
	}{
		"nobody": {options: options("0", 0), adapts: true, follows: true, percent: 400},
		"GOGC":   {options: options("0", 0), gogc: "70", follows: true, percent: 100},
		"GOMEMLIMIT": {options: options("0", 0), gomemlimit: "3GiB", adapts: true, percent: 400,
			limit: 4321 << 20},
		"flags":                  {options: options("2Gi", 70), follows: true, percent: 70, limit: 2 << 30},
		"flags and environment":  {"50", "3GiB", options("2Gi", 70), false, true, 70, 2 << 30},
		"a flag, an environment": {"50", "", options("2Gi", 0), false, true, 100, 2 << 30},
		"less than what is alive": {options: options("64Mi", 0), adapts: true, follows: true, percent: 400,
			limit: 64 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			restore(t)
			debug.SetMemoryLimit(4321 << 20)
			t.Setenv("GOGC", test.gogc)
			t.Setenv("GOMEMLIMIT", test.gomemlimit)
			k := newKeeper(test.options)
			if k.adapts != test.adapts || k.follows != test.follows {
				t.Errorf("percent adapts: %t, limit follows: %t", k.adapts, k.follows)
			}
			k.adjust(usage{live: 5 << 20, held: 10 << 20})
			if got := percentNow(); got != test.percent {
				t.Errorf("%d %%, want %d", got, test.percent)
			}
			if got := debug.SetMemoryLimit(-1); test.limit != 0 && got != test.limit {
				t.Errorf("limit %d, want %d", got, test.limit)
			}
			k.adjust(usage{live: 640 << 20, held: 4000 << 20, objects: 640 << 20})
			want, limit := test.percent, test.limit
			if test.adapts {
				want = 60
			}
			if test.follows {
				limit = max(limit, 5000<<20, k.asked)
			}
			if got, now := percentNow(), debug.SetMemoryLimit(-1); got != want || now != limit {
				t.Errorf("of a large heap %d %% and limit %d, want %d and %d", got, now, want, limit)
			}
		})
	}
}

func options(limit string, percent int) Options {
	o := NewOptions(300 << 20)
	o.SoftLimit.Quantity, o.GCPercent = resource.MustParse(limit), percent
	return o
}

// Each collection is followed, the first as the third, until the end.
func TestEachCollectionIsFollowed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan struct{}, 10)
	afterEachCollection(ctx, func() { seen <- struct{}{} })
	for i := range 3 {
		runtime.GC()
		select {
		case <-seen:
		case <-time.After(10 * time.Second):
			t.Fatalf("collection %d was not noticed", i)
		}
	}
}

// A process whose live heap has grown keeps less garbage, without a request.
func TestKeepFollowsTheLiveHeap(t *testing.T) {
	restore(t)
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	Keep(ctx, options("0", 0))
	if got := percentNow(); got != 400 {
		t.Fatalf("at first %d %%", got)
	}
	alive := make([]byte, 150<<20)
	for deadline := time.Now().Add(10 * time.Second); percentNow() > 100; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("%d %% beside %d MiB", percentNow(), len(alive)>>20)
		}
	}
	runtime.KeepAlive(alive)
}
