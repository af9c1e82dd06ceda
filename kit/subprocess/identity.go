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
	stat, err := readStat(pid)
	if err != nil {
		return identity{}, err
	}
	id, err := parseStat(stat)
	id.bootID = boot
	return id, err
}

// Fields of /proc/PID/stat (proc_pid_stat(5)), counted from the third one, the state.
const statState, statUser, statSystem, statThreads, statStartTime, statResident = 0, 11, 12, 17, 19, 21

// readStat returns /proc/PID/stat.
func readStat(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return string(stat), err
}

// statFields returns the fields of a stat from the state on, at least up to the last one that is asked for. The name in
// parentheses before them may hold spaces and parentheses itself, so the fields are counted from its end.
func statFields(stat string, last int) ([]string, error) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return nil, errors.New("reading a process's stat: no name in it")
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) <= last {
		return nil, errors.New("reading a process's stat: too few fields")
	}
	return fields, nil
}

// parseStat reads the state and the start time from /proc/PID/stat.
func parseStat(stat string) (identity, error) {
	fields, err := statFields(stat, statStartTime)
	if err != nil {
		return identity{}, err
	}
	ticks, err := strconv.ParseUint(fields[statStartTime], 10, 64)
	if err != nil {
		return identity{}, fmt.Errorf("reading a process's start time: %w", err)
	}
	// While other threads are still on their way out, the process holds its ports and files.
	dead := (fields[statState] == "Z" || fields[statState] == "X") &&
		(fields[statThreads] == "0" || fields[statThreads] == "1")
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
