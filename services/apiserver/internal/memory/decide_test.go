package memory

import (
	"math"
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
		{"64 MiB of a small live heap", 40 * mib, 0, 104 * mib, true},
		{"less than 64 MiB", 40 * mib, 0, 104*mib - 1, false},
		{"allocations of half the live heap", 400 * mib, 200 * mib, 800 * mib, true},
		{"more allocations", 400 * mib, 200*mib + 1, 800 * mib, false},
		{"a collection since", 400 * mib, 0, 300 * mib, false},
		{"nothing to give", 400 * mib, 0, 400 * mib, false},
		{"64 MiB of 128 MiB, where both bounds meet", 128 * mib, 0, 192 * mib, true},
		{"less where both bounds meet", 128 * mib, 0, 192*mib - 1, false},
		{"nothing alive", 0, 0, 64 * mib, true},
		{"nothing alive and an allocation", 0, 1, 64 * mib, false},
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
