package memory

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const mib = 1 << 20

func TestDefaultLimit(t *testing.T) {
	for available, want := range map[uint64]int64{
		0: 512 * mib, 1024 * mib: 512 * mib, 2048*mib + 3: 512 * mib, 2048*mib + 4: 512*mib + 1,
		16384 * mib: 4096 * mib, 1 << 40: 1 << 38, math.MaxUint64: math.MaxInt64 / 2,
	} {
		if got := defaultLimit(available); got != want {
			t.Errorf("of %d: %d, want %d", available, got, want)
		}
	}
}

func TestShouldReturn(t *testing.T) {
	for _, row := range []struct {
		name                  string
		live, allocated, held uint64
		want                  bool
	}{
		{"half of a large live heap", 400 * mib, 0, 600 * mib, true},
		{"less than half of it", 400 * mib, 0, 600*mib - 1, false},
		{"16 MiB of a small live heap", 10 * mib, 0, 26 * mib, true},
		{"less than 16 MiB", 10 * mib, 0, 26*mib - 1, false},
		{"allocations of half the live heap", 400 * mib, 200 * mib, 800 * mib, true},
		{"more allocations", 400 * mib, 200*mib + 1, 800 * mib, false},
		{"a collection since", 400 * mib, 0, 300 * mib, false},
		{"nothing to give", 400 * mib, 0, 400 * mib, false},
		{"16 MiB of 32 MiB, where both bounds meet", 32 * mib, 0, 48 * mib, true},
		{"less where both bounds meet", 32 * mib, 0, 48*mib - 1, false},
		{"nothing alive", 0, 0, 16 * mib, true},
		{"nothing alive and an allocation", 0, 1, 16 * mib, false},
	} {
		before := usage{allocated: 7 * mib}
		for _, free := range []uint64{0, row.held / 2, row.held} {
			now := usage{live: row.live, allocated: 7*mib + row.allocated, objects: row.held - free, free: free}
			if got := shouldReturn(before, now); got != row.want {
				t.Errorf("%s, %d free: %t", row.name, free, got)
			}
		}
	}
}

func TestLimitFiles(t *testing.T) {
	for cgroup, want := range map[string][]string{
		"0::/a/b\n": {"/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup/memory.max"},
		"9:cpu,cpuacct:/x\n4:memory:/p\n1:name=systemd:/y\n": {
			"/sys/fs/cgroup/memory/p/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		"4:hugetlb,memory:/\n":   {"/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		"0::/../../c":            {"/sys/fs/cgroup/c/memory.max", "/sys/fs/cgroup/memory.max"},
		"nonsense\n":             nil,
		"nonsense\n4:memory:/\n": {"/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		"":                       nil,
		"0::/\n":                 {"/sys/fs/cgroup/memory.max"},
		"0::a/./b/\n": {"/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max",
			"/sys/fs/cgroup/memory.max"},
		"0::/a:b\n":           {"/sys/fs/cgroup/a:b/memory.max", "/sys/fs/cgroup/memory.max"},
		"4:memory,cpu:/\n":    {"/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		"4:mymemory:/p\n":     nil,
		"4:memoryless,x:/p\n": nil,
	} {
		if got := limitFiles(cgroup); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", cgroup, got, want)
		}
	}
}

// The heap grows to five times what is alive or to its target, whichever is less, and by three fifths where what is
// alive leaves less room below the target.
func TestGarbagePercent(t *testing.T) {
	for _, row := range []struct {
		live, target uint64
		want         int
	}{
		{0, 300 * mib, 400}, {1, 300 * mib, 400}, {60 * mib, 300 * mib, 400}, {61 * mib, 300 * mib, 391},
		{100 * mib, 300 * mib, 200}, {150 * mib, 300 * mib, 100}, {187 * mib, 300 * mib, 60},
		{188 * mib, 300 * mib, 60}, {186 * mib, 300 * mib, 61}, {300 * mib, 300 * mib, 60}, {301 * mib, 300 * mib, 60},
		{1 << 40, 300 * mib, 60}, {math.MaxUint64, 300 * mib, 60}, {32 * mib, 64 * mib, 100}, {0, 0, 60},
	} {
		if got := garbagePercent(row.live, row.target); got != row.want {
			t.Errorf("%d MiB of %d: %d %%, want %d", row.live/mib, row.target/mib, got, row.want)
		}
	}
}

func TestFollowingLimit(t *testing.T) {
	for _, row := range []struct {
		asked       int64
		inUse       uint64
		want        int64
		description string
	}{
		{512 * mib, 0, 512 * mib, "nothing in use"},
		{500 * mib, 400 * mib, 500 * mib, "a quarter of what is in use is left"},
		{500 * mib, 400*mib + 4, 500*mib + 5, "less than a quarter is left"},
		{64 * mib, 400 * mib, 500 * mib, "far more in use than asked for"},
	} {
		if got := followingLimit(row.asked, row.inUse); got != row.want {
			t.Errorf("%s: %d, want %d", row.description, got, row.want)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		asked, inUse := int64(random.Uint32()), int64(random.Uint32())
		if limit := followingLimit(asked, uint64(inUse)); limit < asked || limit < inUse {
			t.Errorf("%d asked for, %d in use: %d", asked, inUse, limit)
		}
	}
}

// The collector's settings change only if that makes a difference.
func TestDiffers(t *testing.T) {
	for _, row := range []struct {
		value, holds int
		want         bool
	}{{100, 100, false}, {110, 100, false}, {111, 100, true}, {90, 100, false}, {89, 100, true}, {1, 0, true},
		{0, 0, false}} {
		if got := differs(row.value, row.holds); got != row.want {
			t.Errorf("%d after %d: %t", row.value, row.holds, got)
		}
	}
}

// What is in use is all that the process has but garbage and what lies free.
func TestInUse(t *testing.T) {
	for _, row := range []struct {
		now  usage
		want uint64
	}{
		{usage{live: 40, objects: 100, free: 20, held: 150}, 70},
		{usage{live: 40, objects: 30, free: 20, held: 150}, 130},
		{usage{live: 0, objects: 100, free: 60, held: 150}, 0},
	} {
		if got := row.now.inUse(); got != row.want {
			t.Errorf("%+v: %d, want %d", row.now, got, row.want)
		}
	}
}
