package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"keelson.dev/services/nodeagent/internal/cgroup"
)

// host is what the machine as a whole uses.
type host struct {
	boot                                     time.Time
	cpuNanos                                 uint64
	memoryTotal, memoryFree, memoryAvailable uint64
	// swapTotal is 0 without swap.
	swapTotal, swapFree uint64
	stalls              cgroup.Stalls
}

// workingSet is the memory that cannot be made available at once.
func (h host) workingSet() uint64 { return h.memoryTotal - min(h.memoryTotal, h.memoryAvailable) }

// swapUsed is 0 without swap.
func (h host) swapUsed() uint64 { return h.swapTotal - min(h.swapTotal, h.swapFree) }

// nanosPerTick is the unit of /proc/stat.
const nanosPerTick = uint64(time.Second / 100)

// readHost reads the figures of the machine from its proc file system.
func readHost(proc string) (host, error) {
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return host{}, fmt.Errorf("reading the machine's cpu time: %w", err)
	}
	meminfo, err := os.ReadFile(filepath.Join(proc, "meminfo"))
	if err != nil {
		return host{}, fmt.Errorf("reading the machine's memory: %w", err)
	}
	h := parseHost(string(stat), string(meminfo))
	h.stalls = cgroup.Stalls{CPU: readStall(proc, "cpu"), Memory: readStall(proc, "memory"), IO: readStall(proc, "io")}
	return h, nil
}

// readStall returns nil if the kernel does not report for how long processes have waited.
func readStall(proc, resource string) *cgroup.Stall {
	text, err := os.ReadFile(filepath.Join(proc, "pressure", resource))
	if err != nil {
		return nil
	}
	return cgroup.ParseStall(string(text))
}

func parseHost(stat, meminfo string) host {
	var h host
	for _, line := range strings.Split(stat, "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 8 && fields[0] == "cpu":
			for i, field := range fields[1:9] { // user nice system idle iowait irq softirq steal
				if i != 3 && i != 4 {
					h.cpuNanos += number(field) * nanosPerTick
				}
			}
		case len(fields) == 2 && fields[0] == "btime":
			h.boot = time.Unix(int64(number(fields[1])), 0)
		}
	}
	memory := map[string]*uint64{"MemTotal:": &h.memoryTotal, "MemFree:": &h.memoryFree,
		"MemAvailable:": &h.memoryAvailable, "SwapTotal:": &h.swapTotal, "SwapFree:": &h.swapFree}
	for _, line := range strings.Split(meminfo, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if field := memory[fields[0]]; field != nil {
			*field = number(fields[1]) << 10
		}
	}
	return h
}

func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// HostMemory reads the machine's memory from its proc file system: the total, and what is not in the working set,
// the same as in the Summary. In bytes.
func HostMemory(proc string) (total, available int64, err error) {
	meminfo, err := os.ReadFile(filepath.Join(proc, "meminfo"))
	if err != nil {
		return 0, 0, fmt.Errorf("reading the machine's memory: %w", err)
	}
	h := parseHost("", string(meminfo))
	if h.memoryTotal == 0 || !strings.Contains(string(meminfo), "MemAvailable:") {
		return 0, 0, fmt.Errorf("reading the machine's memory: %s/meminfo does not say how much is available", proc)
	}
	return int64(h.memoryTotal), int64(h.memoryTotal - h.workingSet()), nil
}

// HostProcesses counts the processes of the whole machine, including threads, from proc_loadavg(5).
func HostProcesses(proc string) (int64, error) {
	file := filepath.Join(proc, "loadavg")
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("counting processes: %w", err)
	}
	fields := strings.Fields(string(data))
	if len(fields) < 4 {
		return 0, fmt.Errorf("counting processes: %s has %d fields", file, len(fields))
	}
	_, all, _ := strings.Cut(fields[3], "/")
	running, err := strconv.ParseInt(all, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("counting processes: %s: %w", file, err)
	}
	return running, nil
}
