// Package memory bounds what the process holds of the machine's memory: a soft limit for the heap, above which the
// garbage collector works harder, and a return of what a busy time has left to the system once it is over.
package memory

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lookInterval is how often the process looks whether it holds memory for nothing.
const lookInterval = 30 * time.Second

// Keep bounds the memory of the process until ctx ends: to limit; if that is 0 to GOMEMLIMIT, and without it to a
// quarter of what the machine or the cgroup has. It returns the limit that holds.
func Keep(ctx context.Context, limit int64) int64 {
	switch {
	case limit > 0:
		debug.SetMemoryLimit(limit)
	case os.Getenv("GOMEMLIMIT") == "":
		debug.SetMemoryLimit(defaultLimit(available()))
	}
	go returnUnused(ctx)
	return debug.SetMemoryLimit(-1)
}

func returnUnused(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	before := look()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := look()
		if shouldReturn(before, now) {
			debug.FreeOSMemory()
			now = look()
		}
		before = now
	}
}

// look asks the runtime, which answers without stopping the program.
func look() usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	return usage{live: value(0), allocated: value(1), objects: value(2), free: value(3)}
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
