package subprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The processes of these tests are this test program under another role.
func TestMain(m *testing.M) {
	switch role := os.Getenv("PROCMESH_ROLE"); role {
	case "":
		os.Exit(m.Run())
	case "fail":
		fmt.Println("first line")
		fmt.Println("flag --nosuch is unknown")
		os.Exit(3)
	case "serve", "stubborn":
		serve(role == "stubborn")
	default:
		panic("unknown role " + role)
	}
}

// serve says that it is ready by a file and runs until it is signalled to end, which the stubborn one does not hear.
func serve(stubborn bool) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	session, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	fmt.Println("leads its session:", int(session) == os.Getpid())
	if err := os.WriteFile(os.Args[1], []byte(strings.Join(os.Args[1:], " ")), 0o600); err != nil {
		panic(err)
	}
	for <-signals; stubborn; <-signals {
	}
	fmt.Println("told to end")
}

func role(t *testing.T, name string) (command Command, ready func(context.Context) error) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "ready")
	command = Command{
		Name: name, Path: os.Args[0], Args: []string{file, "more"}, Env: []string{"PROCMESH_ROLE=" + name},
		Log: filepath.Join(dir, "logs", "log"),
	}
	return command, func(context.Context) error { _, err := os.Stat(file); return err }
}

func start(t *testing.T, command Command) Process {
	t.Helper()
	p, err := Start(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Kill(context.Background(), p); err != nil {
			t.Error(err)
		}
	})
	return p
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestAProcessStartsBecomesReadyAndStops(t *testing.T) {
	command, ready := role(t, "serve")
	p := start(t, command)
	if err := WaitReady(bounded(t), p, ready); err != nil {
		t.Fatal(err)
	}
	if !p.Alive() || p.StartTime == 0 || p.BootID == "" {
		t.Errorf("a running process is recorded as %+v", p)
	}
	if err := Stop(bounded(t), p, time.Minute); err != nil {
		t.Fatal(err)
	}
	if p.Alive() {
		t.Error("it runs after Stop")
	}
	if got := p.Ended(); got != "ended with exit status 0" {
		t.Errorf("it %s", got)
	}
	lines, err := Tail(command.Log, 0, 10)
	if err != nil || !slices.Equal(lines, []string{"leads its session: true", "told to end"}) {
		t.Errorf("its log is %q, %v", lines, err)
	}
	if err := Stop(bounded(t), p, 0); err != nil {
		t.Errorf("stopping it again: %v", err)
	}
}

func TestAProcessThatDoesNotHearIsKilled(t *testing.T) {
	command, ready := role(t, "stubborn")
	p := start(t, command)
	if err := WaitReady(bounded(t), p, ready); err != nil {
		t.Fatal(err)
	}
	if err := Stop(bounded(t), p, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := p.Ended(); got != "ended with signal: killed" {
		t.Errorf("it %s", got)
	}
}

func TestAnEarlyEndShowsTheLastLinesOfThisRun(t *testing.T) {
	command, ready := role(t, "fail")
	if err := os.MkdirAll(filepath.Dir(command.Log), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(command.Log, []byte("a run before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := WaitReady(bounded(t), start(t, command), ready)
	var failed *FailedError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v, want a FailedError", err)
	}
	want := "fail ended with exit status 3\n    first line\n    flag --nosuch is unknown\n  its log: " + command.Log
	if failed.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", failed, want)
	}
}

func TestAProcessThatNeverGetsReadySaysWhy(t *testing.T) {
	command, _ := role(t, "serve")
	ctx, cancel := context.WithCancel(t.Context())
	err := WaitReady(ctx, start(t, command), func(context.Context) error {
		cancel()
		return errors.New("connection refused")
	})
	if err == nil || !strings.Contains(err.Error(), "serve is not ready: connection refused") {
		t.Errorf("got %v", err)
	}
}

// A check that ctx cuts off does not hide what the one before has seen.
func TestWhatKeptAProcessFromBeingReady(t *testing.T) {
	command, _ := role(t, "serve")
	ctx, cancel := context.WithCancel(t.Context())
	checked := false
	err := WaitReady(ctx, start(t, command), func(context.Context) error {
		if !checked {
			checked = true
			return errors.New("connection refused")
		}
		cancel()
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "serve is not ready: connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestARecordedProcessIsFoundAgainAndRestarted(t *testing.T) {
	command, ready := role(t, "serve")
	first := start(t, command)
	if err := WaitReady(bounded(t), first, ready); err != nil {
		t.Fatal(err)
	}
	record, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	var read Process
	if err := json.Unmarshal(record, &read); err != nil {
		t.Fatal(err)
	}
	if !read.Alive() {
		t.Error("the recorded process is not found")
	}
	if _, err := Restart(read); err == nil {
		t.Error("a second copy was started beside the first")
	}
	if err := Stop(bounded(t), read, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(command.Args[0]); err != nil {
		t.Fatal(err)
	}
	second, err := Restart(read)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Kill(context.Background(), second) })
	if err := WaitReady(bounded(t), second, ready); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(command.Args[0]); err != nil || string(got) != command.Args[0]+" more" {
		t.Errorf("it was started again with %q, %v", got, err)
	}
}

// The id of a process that has ended may be another's now: neither is it taken for the process nor does it get its
// signal.
func TestAReusedIDIsNotTouched(t *testing.T) {
	command, ready := role(t, "serve")
	p := start(t, command)
	if err := WaitReady(bounded(t), p, ready); err != nil {
		t.Fatal(err)
	}
	for what, other := range map[string]Process{
		"another start time": {Command: command, PID: p.PID, StartTime: p.StartTime - 1, BootID: p.BootID},
		"another boot":       {Command: command, PID: p.PID, StartTime: p.StartTime, BootID: "other"},
		"never started":      {Command: command},
	} {
		if other.Alive() {
			t.Errorf("%s: taken for the process", what)
		}
		if err := Stop(bounded(t), other, 0); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !p.Alive() {
		t.Error("the process was hit")
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Start(Command{Name: "x", Path: "/nosuchprogram", Log: filepath.Join(dir, "log")}); err == nil ||
		!strings.Contains(err.Error(), "starting x") {
		t.Errorf("a missing program: %v", err)
	}
	if _, err := Start(Command{Name: "x", Path: os.Args[0], Log: dir}); err == nil || !strings.Contains(err.Error(),
		"the log of x") {
		t.Errorf("a log that is a folder: %v", err)
	}
}

func TestParseStat(t *testing.T) {
	rest := " S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0"
	for name, c := range map[string]struct {
		stat string
		want identity
		bad  bool
	}{
		"plain":                   {"42 (pause)" + rest, identity{startTime: 987654}, false},
		"name with a parenthesis": {"42 (a) S 1 (b c)" + rest, identity{startTime: 987654}, false},
		"zombie": {"42 (a)" + strings.Replace(rest, " S ", " Z ", 1),
			identity{startTime: 987654, dead: true}, false},
		"threads on their way out": {"42 (a)" + strings.NewReplacer(" S ", " Z ", " 20 0 1 ", " 20 0 7 ").Replace(rest),
			identity{startTime: 987654}, false},
		"no name":   {"42 a S", identity{}, true},
		"cut off":   {"42 (a) S 1", identity{}, true},
		"no number": {"42 (a)" + strings.Replace(rest, "987654", "x", 1), identity{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(c.stat)
			if got != c.want || (err != nil) != c.bad {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("x", maxTail)
	for name, c := range map[string]struct {
		content string
		offset  int64
		lines   int
		want    []string
	}{
		"all":                {"a\nb\n", 0, 5, []string{"a", "b"}},
		"the last":           {"a\nb\nc\n", 0, 2, []string{"b", "c"}},
		"from the offset":    {"old\nnew\n", 4, 5, []string{"new"}},
		"nothing new":        {"old\n", 4, 5, nil},
		"a bounded part":     {long + "\nend\n", 0, 1, []string{"end"}},
		"shorter than noted": {"cut\n", 100, 5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := Tail(file, c.offset, c.lines); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestOutdatedIsAProcessWhoseProgramWasReplaced(t *testing.T) {
	command, _ := role(t, "serve")
	content, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	install := func() {
		t.Helper()
		if err := errors.Join(os.WriteFile(command.Path+".new", content, 0o700), os.Rename(command.Path+".new",
			command.Path)); err != nil {
			t.Fatal(err)
		}
	}
	command.Path = filepath.Join(t.TempDir(), "program")
	install()
	p := start(t, command)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(command.Path, later, later); err != nil {
		t.Fatal(err)
	}
	if p.Outdated() {
		t.Error("a program whose time alone is new counts as another")
	}
	install()
	if !p.Outdated() {
		t.Error("a replaced program does not count as another")
	}
	if err := Kill(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if p.Outdated() {
		t.Error("a process that has ended is outdated")
	}
}

// A process runs in the namespaces that its command names, also when it is started again; its starter stays.
func TestAProcessRunsInItsNamespaces(t *testing.T) {
	kinds := []string{"net", "uts", "mnt"}
	in := func(process string) (links []string) {
		t.Helper()
		for _, kind := range kinds {
			link, err := os.Readlink("/proc/" + process + "/ns/" + kind)
			if err != nil {
				t.Error(err)
			}
			links = append(links, link)
		}
		return links
	}
	own := in("self")
	// A process in another namespace keeps it for the test.
	keeper := exec.Command("sleep", "600")
	keeper.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNS}
	if err := keeper.Start(); err != nil {
		t.Fatalf("namespaces for the test, which needs root: %v", err)
	}
	defer func() { _, _ = keeper.Process.Kill(), keeper.Wait() }()
	pid := strconv.Itoa(keeper.Process.Pid)
	want, files := in(pid), "/proc/"+pid+"/ns/"
	for i := range kinds {
		if want[i] == own[i] {
			t.Fatalf("the other namespace is this process's: %s", own[i])
		}
	}
	p, err := Start(Command{Name: "inside", Path: "/bin/sleep", Args: []string{"600"}, NetNS: files + "net",
		UTSNS: files + "uts", MountNS: files + "mnt", Log: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := in(strconv.Itoa(p.PID)); !slices.Equal(got, want) {
			t.Errorf("it runs in %s, want %s", got, want)
		}
		if err := Kill(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if p, err = Restart(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := Kill(t.Context(), p); err != nil {
		t.Error(err)
	}
	for _, which := range []string{"self", "thread-self"} {
		if got := in(which); !slices.Equal(got, own) {
			t.Errorf("the starter has moved to %s", got)
		}
	}
	_, err = Start(Command{Name: "lost", Path: "/bin/sleep", NetNS: "/none", Log: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.Contains(err.Error(), "starting lost: opening its network namespace: open /none") {
		t.Errorf("without its namespace: %v", err)
	}
}
