package subprocess

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

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
	stat, err := readStat(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("reading the usage of process %d: %w", pid, err)
	}
	usage, err := parseUsage(stat, int64(os.Getpagesize()))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the usage of process %d: %w", pid, err)
	}
	return usage, nil
}

// parseUsage reads what a process has used from its /proc/PID/stat.
func parseUsage(stat string, pageSize int64) (Usage, error) {
	fields, err := statFields(stat, statResident)
	if err != nil {
		return Usage{}, err
	}
	var numbers [statResident + 1]int64
	for _, i := range []int{statUser, statSystem, statThreads, statResident} {
		if numbers[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return Usage{}, fmt.Errorf("reading a process's stat: field %d: %w", i+3, err)
		}
	}
	return Usage{CPU: time.Duration(numbers[statUser]+numbers[statSystem]) * (time.Second / ticksPerSecond),
		Memory: numbers[statResident] * pageSize, Threads: int(numbers[statThreads])}, nil
}
