package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit in which the kernel counts the CPU time of processes, on every architecture.
const ticksPerSecond = 100

// Usage is what a process has used.
type Usage struct {
	// CPU is the time of all its threads, in user mode and in the kernel, since it began.
	CPU time.Duration
	// Memory is how much of its memory is resident, in bytes.
	Memory int64
	// Threads is how many threads it has.
	Threads int
}

// UsageOf returns what a process has used until now.
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the usage of process %d: %w", pid, err)
	}
	usage, err := parseUsage(string(stat), int64(os.Getpagesize()))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the usage of process %d: %w", pid, err)
	}
	return usage, nil
}

// parseUsage reads /proc/PID/stat (proc_pid_stat(5)). The name, in parentheses, may hold anything.
func parseUsage(stat string, pageSize int64) (Usage, error) {
	const user, system, threads, resident = 14 - 3, 15 - 3, 20 - 3, 24 - 3 // counted from the third field, the state
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= resident {
		return Usage{}, fmt.Errorf("%q has %d fields after the name, want more than %d", stat, len(fields), resident)
	}
	var numbers [resident + 1]int64
	for _, i := range []int{user, system, threads, resident} {
		var err error
		if numbers[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return Usage{}, fmt.Errorf("field %d: %w", i+3, err)
		}
	}
	return Usage{CPU: time.Duration(numbers[user]+numbers[system]) * (time.Second / ticksPerSecond),
		Memory: numbers[resident] * pageSize, Threads: int(numbers[threads])}, nil
}
