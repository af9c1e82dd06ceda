package filter

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// flagTsync is what a filter always has: every thread of the process gets it.
const flagTsync = "SECCOMP_FILTER_FLAG_TSYNC"

// flags are the kernel's values of those that a profile may name.
var flags = map[specs.LinuxSeccompFlag]uintptr{
	flagTsync:                       unix.SECCOMP_FILTER_FLAG_TSYNC,
	specs.LinuxSeccompFlagLog:       unix.SECCOMP_FILTER_FLAG_LOG,
	specs.LinuxSeccompFlagSpecAllow: unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW,
}

// FlagSupported says why a profile may not name a flag.
func FlagSupported(flag specs.LinuxSeccompFlag) error {
	if _, ok := flags[flag]; !ok {
		return fmt.Errorf("seccomp flag %s is not supported", flag)
	}
	return nil
}

// Load gives a filter program to all threads of this process, for good.
func Load(program []unix.SockFilter, names []specs.LinuxSeccompFlag) error {
	if len(program) == 0 {
		return errors.New("the filter program is empty")
	}
	value := uintptr(unix.SECCOMP_FILTER_FLAG_TSYNC)
	for _, name := range names {
		if err := FlagSupported(name); err != nil {
			return err
		}
		value |= flags[name]
	}
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, value,
		uintptr(unsafe.Pointer(&header)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return fmt.Errorf("loading the filter: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("loading the filter: thread %d has another one", thread)
	}
	return nil
}
