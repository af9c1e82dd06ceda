package subprocess

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// identity distinguishes a process from a later one with the same id.
type identity struct {
	startTime uint64
	bootID    string
	dead      bool // it has ended and waits for its parent
}

func identify(pid int) (identity, error) {
	boot, err := bootID()
	if err != nil {
		return identity{}, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return identity{}, err
	}
	id, err := parseStat(string(stat))
	id.bootID = boot
	return id, err
}

// parseStat reads the state and the start time of /proc/PID/stat. The name in parentheses may hold spaces and
// parentheses itself, so the fields are counted from its end.
func parseStat(stat string) (identity, error) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return identity{}, errors.New("reading a process's stat: no name in it")
	}
	const state, threads, startTime = 0, 17, 19 // fields 3, 20 and 22, counted from the name's end
	fields := strings.Fields(stat[end+1:])
	if len(fields) <= startTime {
		return identity{}, errors.New("reading a process's stat: too few fields")
	}
	ticks, err := strconv.ParseUint(fields[startTime], 10, 64)
	if err != nil {
		return identity{}, fmt.Errorf("reading a process's start time: %w", err)
	}
	// While other threads are still on their way out, the process holds its ports and files.
	dead := (fields[state] == "Z" || fields[state] == "X") && (fields[threads] == "0" || fields[threads] == "1")
	return identity{startTime: ticks, dead: dead}, nil
}

// bootID names this boot; start times of another one mean nothing.
var bootID = sync.OnceValues(func() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot's id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
})
