package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// host is what the machine as a whole uses.
type host struct {
	boot                                     time.Time
	cpuNanos                                 uint64
	memoryTotal, memoryFree, memoryAvailable uint64
}

// workingSet is the memory that cannot be had at once.
func (h host) workingSet() uint64 { return h.memoryTotal - min(h.memoryTotal, h.memoryAvailable) }

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
	return parseHost(string(stat), string(meminfo)), nil
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
	for _, line := range strings.Split(meminfo, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "MemTotal:":
			h.memoryTotal = number(fields[1]) << 10
		case "MemFree:":
			h.memoryFree = number(fields[1]) << 10
		case "MemAvailable:":
			h.memoryAvailable = number(fields[1]) << 10
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
