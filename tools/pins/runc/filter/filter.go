// Package filter turns a container's seccomp profile into a filter program for the kernel. runc does this with the C
// library libseccomp; where its headers are not installed, our build of runc does it with this package, so that
// containers have their profile on every machine.
//
// A system call that no rule names gets the profile's default action. A rule without conditions decides for all calls
// of its name; otherwise the first rule whose conditions hold does.
package filter

//go:generate go run ./gentables

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// call is one system call of an architecture.
type call struct {
	name   string
	number uint32
}

// architecture is one system call table of the kernel.
type architecture struct {
	// name is runc's name for it.
	name  string
	audit uint32
	calls []call // sorted by name
	// foreign is the first number that belongs to another table (x32), or 0.
	foreign uint32
}

// families are the tables that a program may use on a machine of the first one's architecture.
var families = map[string][]architecture{
	"amd64": {
		{name: "amd64", audit: unix.AUDIT_ARCH_X86_64, calls: callsamd64, foreign: 0x40000000},
		{name: "x86", audit: unix.AUDIT_ARCH_I386, calls: calls386},
	},
	"arm64": {
		{name: "arm64", audit: unix.AUDIT_ARCH_AARCH64, calls: callsarm64},
		{name: "arm", audit: unix.AUDIT_ARCH_ARM, calls: callsarm},
	},
}

// maxProgram is the kernel's limit.
const maxProgram = 4096

// Offsets in the kernel's seccomp_data.
const (
	numberOffset = 0
	archOffset   = 4
	argsOffset   = 16
)

// rule is what happens to calls whose conditions all hold.
type rule struct {
	conditions []*configs.Arg
	action     uint32
}

// Supported reports whether Compile knows the machine architecture, by Go's name.
func Supported(machine string) bool { return families[machine] != nil }

// Compile returns the filter program of a profile on a machine architecture, by Go's name.
func Compile(profile *configs.Seccomp, machine string) ([]unix.SockFilter, error) {
	if !Supported(machine) {
		return nil, fmt.Errorf("seccomp on %s needs a runc that is built with libseccomp", machine)
	}
	otherwise, err := returnValue(profile.DefaultAction, profile.DefaultErrnoRet)
	if err != nil {
		return nil, fmt.Errorf("the default action: %w", err)
	}
	p := &program{}
	p.load(archOffset)
	for i, arch := range families[machine] {
		if i > 0 && !slices.Contains(profile.Architectures, arch.name) {
			continue
		}
		if err := p.architecture(arch, profile, otherwise); err != nil {
			return nil, err
		}
	}
	p.end(unix.SECCOMP_RET_KILL_THREAD)
	if len(p.code) > maxProgram {
		return nil, fmt.Errorf("the seccomp profile needs %d instructions, and the kernel takes %d", len(p.code),
			maxProgram)
	}
	return p.code, nil
}

// architecture appends the decisions of one table, to be jumped over by calls of others.
func (p *program) architecture(arch architecture, profile *configs.Seccomp, otherwise uint32) error {
	skip := p.unless(arch.audit)
	p.load(numberOffset)
	if arch.foreign != 0 {
		p.when(unix.BPF_JGE, arch.foreign, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS))
	}
	order, rules, newest, err := arch.rules(profile, otherwise)
	if err != nil {
		return err
	}
	// Programs ask for calls that are newer than the profile and fall back where the kernel does not know them; a
	// refusal for lack of permission would end them.
	if restricts(profile.DefaultAction) {
		p.when(unix.BPF_JGT, newest, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS))
	}
	for _, number := range order {
		p.call(number, rules[number], otherwise)
	}
	p.end(otherwise)
	p.land(skip)
	return nil
}

// rules groups a profile's rules by the numbers of their calls, in the order in which the profile first names them.
// Calls that the architecture does not have are left out.
func (a architecture) rules(profile *configs.Seccomp, otherwise uint32) (order []uint32, rules map[uint32][]rule,
	newest uint32, err error) {
	rules = map[uint32][]rule{}
	for _, entry := range profile.Syscalls {
		action, err := returnValue(entry.Action, entry.ErrnoRet)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("system call %s: %w", entry.Name, err)
		}
		at, found := slices.BinarySearchFunc(a.calls, entry.Name,
			func(c call, name string) int { return strings.Compare(c.name, name) })
		if !found {
			continue
		}
		number := a.calls[at].number
		newest = max(newest, number)
		if action == otherwise {
			continue
		}
		if _, known := rules[number]; !known {
			order = append(order, number)
		}
		rules[number] = merge(rules[number], entry.Args, action)
	}
	return order, rules, newest, nil
}

// merge adds an entry to the rules of its call. Two conditions on one argument of an entry mean either of them, as runc
// reads them; conditions on different arguments mean all.
func merge(have []rule, args []*configs.Arg, action uint32) []rule {
	if len(have) == 1 && len(have[0].conditions) == 0 {
		return have
	}
	if len(args) == 0 {
		return []rule{{action: action}}
	}
	if !repeats(args) {
		return append(have, rule{args, action})
	}
	for _, arg := range args {
		have = append(have, rule{[]*configs.Arg{arg}, action})
	}
	return have
}

func repeats(args []*configs.Arg) bool {
	seen := map[uint]bool{}
	for _, arg := range args {
		if seen[arg.Index] {
			return true
		}
		seen[arg.Index] = true
	}
	return false
}

// restricts reports whether an action prevents a call.
func restricts(action configs.Action) bool {
	return action != configs.Allow && action != configs.Log && action != configs.Trace
}

func returnValue(action configs.Action, number *uint) (uint32, error) {
	data := uint32(unix.EPERM)
	if number != nil {
		data = uint32(*number) & unix.SECCOMP_RET_DATA
	}
	switch action {
	case configs.Kill, configs.KillThread:
		return unix.SECCOMP_RET_KILL_THREAD, nil
	case configs.KillProcess:
		return unix.SECCOMP_RET_KILL_PROCESS, nil
	case configs.Errno:
		return unix.SECCOMP_RET_ERRNO | data, nil
	case configs.Trace:
		return unix.SECCOMP_RET_TRACE | data, nil
	case configs.Trap:
		return unix.SECCOMP_RET_TRAP, nil
	case configs.Log:
		return unix.SECCOMP_RET_LOG, nil
	case configs.Allow:
		return unix.SECCOMP_RET_ALLOW, nil
	case configs.Notify:
		return 0, errors.New("SCMP_ACT_NOTIFY needs a runc that is built with libseccomp")
	}
	return 0, fmt.Errorf("unknown action %d", action)
}
