package filter

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

const (
	allow  = unix.SECCOMP_RET_ALLOW
	eperm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	kill   = unix.SECCOMP_RET_KILL_THREAD
)

// decide is the kernel's interpreter for the instructions that Compile emits.
func decide(t *testing.T, code []unix.SockFilter, arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	word := func(offset uint32) uint32 {
		switch offset {
		case numberOffset:
			return number
		case archOffset:
			return arch
		}
		index, shift := (offset-argsOffset)/8, (offset-argsOffset)%8*8
		if int(index) >= len(args) {
			return 0
		}
		return uint32(args[index] >> shift)
	}
	var a uint32
	for i := 0; i < len(code); i++ {
		in := code[i]
		taken := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = word(in.K)
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JA:
			i += int(in.K)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			taken = a == in.K
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			taken = a > in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			taken = a >= in.K
		default:
			t.Fatalf("unknown instruction %#x", in.Code)
		}
		if taken {
			i += int(in.Jt)
		} else {
			i += int(in.Jf)
		}
	}
	t.Fatal("the program runs past its end")
	return 0
}

func compile(t *testing.T, profile *configs.Seccomp) []unix.SockFilter {
	t.Helper()
	code, err := Compile(profile, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func rules(entries ...*configs.Syscall) *configs.Seccomp {
	return &configs.Seccomp{DefaultAction: configs.Errno, Architectures: []string{"amd64", "x86", "x32"},
		Syscalls: entries}
}

func entry(name string, args ...*configs.Arg) *configs.Syscall {
	return &configs.Syscall{Name: name, Action: configs.Allow, Args: args}
}

// x86-64 numbers: read 0, write 1, mkdir 83, personality 135, statx 332, and 999 is newer than any.
func TestDecisions(t *testing.T) {
	all := compile(t, rules(entry("read"), entry("nosuchcall"), entry("statx")))
	deny := compile(t, &configs.Seccomp{DefaultAction: configs.Allow,
		Syscalls: []*configs.Syscall{{Name: "mkdir", Action: configs.Errno}}})
	one := uint(1)
	for name, c := range map[string]struct {
		code         []unix.SockFilter
		arch, number uint32
		want         uint32
	}{
		"named":                        {all, unix.AUDIT_ARCH_X86_64, 0, allow},
		"not named":                    {all, unix.AUDIT_ARCH_X86_64, 83, eperm},
		"the newest named":             {all, unix.AUDIT_ARCH_X86_64, 332, allow},
		"newer than the profile":       {all, unix.AUDIT_ARCH_X86_64, 999, enosys},
		"x32":                          {all, unix.AUDIT_ARCH_X86_64, 0x40000000, enosys},
		"32-bit, named":                {all, unix.AUDIT_ARCH_I386, 3, allow},
		"32-bit, not named":            {all, unix.AUDIT_ARCH_I386, 39, eperm},
		"another machine":              {all, unix.AUDIT_ARCH_AARCH64, 0, kill},
		"a list of what is forbidden":  {deny, unix.AUDIT_ARCH_X86_64, 83, eperm},
		"all else":                     {deny, unix.AUDIT_ARCH_X86_64, 999, allow},
		"32-bit that is not asked for": {deny, unix.AUDIT_ARCH_I386, 3, kill},
		"an error number of the rule's": {compile(t, rules(&configs.Syscall{Name: "read", Action: configs.Errno,
			ErrnoRet: new(uint(38))})), unix.AUDIT_ARCH_X86_64, 0, enosys},
		"of the profile's": {compile(t, &configs.Seccomp{DefaultAction: configs.Errno,
			DefaultErrnoRet: &one, Syscalls: []*configs.Syscall{entry("read")}}), unix.AUDIT_ARCH_X86_64, 0, allow},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(t, c.code, c.arch, c.number); got != c.want {
				t.Errorf("got %#x, want %#x", got, c.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	const wide = 0x1_0000_0005
	for op, holds := range map[configs.Operator]func(arg uint64) bool{
		configs.EqualTo:              func(arg uint64) bool { return arg == wide },
		configs.NotEqualTo:           func(arg uint64) bool { return arg != wide },
		configs.GreaterThan:          func(arg uint64) bool { return arg > wide },
		configs.GreaterThanOrEqualTo: func(arg uint64) bool { return arg >= wide },
		configs.LessThan:             func(arg uint64) bool { return arg < wide },
		configs.LessThanOrEqualTo:    func(arg uint64) bool { return arg <= wide },
		configs.MaskEqualTo:          func(arg uint64) bool { return arg&wide == 0x1_0000_0001 },
	} {
		code := compile(t, rules(entry("mkdir", &configs.Arg{Index: 1, Value: wide, ValueTwo: 0x1_0000_0001, Op: op}),
			entry("statx")))
		for _, arg := range []uint64{0, 1, 4, 5, 6, 0x1_0000_0000, 0x1_0000_0001, wide - 1, wide, wide + 1,
			0x2_0000_0000, 0x2_0000_0005, 0xffff_ffff_ffff_ffff} {
			want := eperm
			if holds(arg) {
				want = allow
			}
			if got := decide(t, code, unix.AUDIT_ARCH_X86_64, 83, 7, arg); got != want {
				t.Errorf("operator %d with %#x: got %#x, want %#x", op, arg, got, want)
			}
		}
		if got := decide(t, code, unix.AUDIT_ARCH_X86_64, 332); got != allow {
			t.Errorf("operator %d: the rule behind is lost: %#x", op, got)
		}
	}
}

func TestRulesOfOneCall(t *testing.T) {
	equal := func(index uint, value uint64) *configs.Arg {
		return &configs.Arg{Index: index, Value: value, Op: configs.EqualTo}
	}
	both := compile(t, rules(entry("mkdir", equal(0, 1), equal(1, 2)), entry("statx")))
	either := compile(t, rules(entry("mkdir", equal(0, 1), equal(0, 2)), entry("statx")))
	several := compile(t, rules(entry("mkdir", equal(0, 1)), entry("statx"), entry("mkdir", equal(0, 2))))
	bare := compile(t, rules(entry("mkdir", equal(0, 1)), entry("mkdir"), entry("mkdir", equal(0, 2)), entry("statx")))
	for name, c := range map[string]struct {
		code   []unix.SockFilter
		first  uint64
		second uint64
		want   uint32
	}{
		"all conditions hold":             {both, 1, 2, allow},
		"one of them does":                {both, 1, 3, eperm},
		"either on one argument":          {either, 2, 0, allow},
		"neither":                         {either, 3, 0, eperm},
		"the first entry":                 {several, 1, 0, allow},
		"the second entry":                {several, 2, 0, allow},
		"no entry":                        {several, 3, 0, eperm},
		"an entry without any conditions": {bare, 9, 0, allow},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(t, c.code, unix.AUDIT_ARCH_X86_64, 83, c.first, c.second); got != c.want {
				t.Errorf("got %#x, want %#x", got, c.want)
			}
		})
	}
}

func TestWhatCannotBeCompiledIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		profile *configs.Seccomp
		machine string
		want    string
	}{
		"another machine": {rules(), "riscv64", "needs a runc that is built with libseccomp"},
		"notify": {rules(&configs.Syscall{Name: "read", Action: configs.Notify}), "amd64",
			"system call read: SCMP_ACT_NOTIFY"},
		"an unknown action": {&configs.Seccomp{}, "amd64", "the default action: unknown action 0"},
	} {
		if _, err := Compile(c.profile, c.machine); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := FlagSupported("SECCOMP_FILTER_FLAG_NOSUCH"); err == nil {
		t.Error("an unknown flag is supported")
	}
	if err := Load(nil, nil); err == nil {
		t.Error("an empty program was loaded")
	}
}

func TestTablesAreSorted(t *testing.T) {
	for machine, family := range families {
		for _, arch := range family {
			if len(arch.calls) < 200 || !slices.IsSortedFunc(arch.calls,
				func(a, b call) int { return strings.Compare(a.name, b.name) }) {
				t.Errorf("%s: the table of %s is not usable", machine, arch.name)
			}
		}
	}
}

// TestMain lets the kernel judge in a process of its own, which can never get rid of its filter.
func TestMain(m *testing.M) {
	if os.Getenv("FILTER_CHILD") == "" {
		os.Exit(m.Run())
	}
	profile := &configs.Seccomp{
		DefaultAction: configs.Allow, Architectures: []string{"amd64", "arm64"},
		Syscalls: []*configs.Syscall{
			{Name: "mkdirat", Action: configs.Errno, ErrnoRet: new(uint(unix.EXDEV))},
			{Name: "dup3", Action: configs.Errno,
				Args: []*configs.Arg{{Index: 1, Value: 1000, Op: configs.GreaterThanOrEqualTo}}},
		},
	}
	code, err := Compile(profile, runtime.GOARCH)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err == nil {
		err = Load(code, nil)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(errors.Is(unix.Mkdirat(unix.AT_FDCWD, "/tmp/never", 0), unix.EXDEV), unix.Dup3(1, 900, 0) == nil,
		errors.Is(unix.Dup3(1, 1000, 0), unix.EPERM))
	os.Exit(0)
}

func TestTheKernelTakesTheProgram(t *testing.T) {
	if !Supported(runtime.GOARCH) {
		t.Fatalf("%s has no table", runtime.GOARCH)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "FILTER_CHILD=1")
	if out, err := child.CombinedOutput(); err != nil || string(out) != "true true true\n" {
		t.Errorf("got %q, %v", out, err)
	}
}
