// Package memory bounds what the process holds of the machine's memory: how much garbage may lie beside what is alive,
// a soft limit above which the garbage collector works harder, and a return of what a busy time has left to the system
// once it is over.
//
//	decide.go   how much, by what is alive (pure)
//	options.go  the flags
//	memory.go   what follows each collection and each quiet time
package memory

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"keelson.dev/kit/wakeup"
)

// lookInterval is how often the process looks whether it holds memory for nothing.
const lookInterval = 10 * time.Second

// keeper holds the process to the options.
type keeper struct {
	// percent and limit are the last settings of the collector.
	percent int
	limit   int64
	// asked is the limit where nothing alive is in its way, target what the heap may grow to. follows and adapts say
	// that limit and percent are not the runtime's own business.
	asked           int64
	target          uint64
	follows, adapts bool
}

// Keep bounds the memory of the process until ctx ends, and returns the soft limit that holds at first.
func Keep(ctx context.Context, o Options) int64 {
	k := newKeeper(o)
	k.adjust(look())
	go k.run(ctx)
	return debug.SetMemoryLimit(-1)
}

// newKeeper sorts out who has the say: a flag, else the environment that every Go program has, else what is alive.
func newKeeper(o Options) *keeper {
	k := &keeper{asked: o.SoftLimit.Value(), target: uint64(o.HeapTarget.Value()), follows: true}
	switch {
	case k.asked > 0:
	case os.Getenv("GOMEMLIMIT") != "":
		k.follows = false
	default:
		k.asked = defaultLimit(available())
	}
	switch {
	case o.GCPercent > 0:
		debug.SetGCPercent(o.GCPercent)
	case os.Getenv("GOGC") == "":
		k.adapts = true
	}
	return k
}

func (k *keeper) run(ctx context.Context) {
	collected := wakeup.New()
	afterEachCollection(ctx, collected.Send)
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	before := look()
	for {
		select {
		case <-ctx.Done():
			return
		case <-collected:
			k.adjust(look())
		case <-ticker.C:
			now := look()
			if shouldReturn(before, now) {
				debug.FreeOSMemory()
				now = look()
			}
			before = now
		}
	}
}

// adjust follows what the last collection found alive. The collector's settings change only if they differ by much,
// because a change stops the process for a moment.
func (k *keeper) adjust(now usage) {
	if k.adapts {
		if percent := garbagePercent(now.live, k.target); differs(percent, k.percent) {
			k.percent = percent
			debug.SetGCPercent(percent)
		}
	}
	if k.follows {
		if limit := followingLimit(k.asked, now.inUse()); differs(limit, k.limit) {
			k.limit = limit
			debug.SetMemoryLimit(limit)
		}
	}
}

// afterEachCollection calls do, which must not block, after each collection until ctx ends.
func afterEachCollection(ctx context.Context, do func()) {
	if ctx.Err() != nil {
		return
	}
	// Nothing refers to it, so the next collection finds it. Its size keeps it out of a block shared with others.
	fallen := new([64]byte)
	runtime.AddCleanup(fallen, func(struct{}) {
		afterEachCollection(ctx, do) // first: the next collection may begin before do is done
		do()
	}, struct{}{})
}

// look asks the runtime, which answers without stopping the program.
func look() usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	return usage{live: value(0), allocated: value(1), objects: value(2), free: value(3), held: value(4) - value(5)}
}

// available is the memory of the machine, or less where a cgroup limits it. What cannot be read limits nothing.
func available() uint64 {
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		return 0
	}
	bytes := uint64(machine.Totalram) * uint64(machine.Unit) //nolint:unconvert // of 32 bits on some machines
	cgroup, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return bytes
	}
	for _, file := range limitFiles(string(cgroup)) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			bytes = min(bytes, limit)
		}
	}
	return bytes
}
