package supervise

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/unit"
	"keelson.dev/kit/subprocess"
)

const name = "keelson-scheduler.service"

// bed is a folder of units whose supervisor runs in the test.
type bed struct {
	t *testing.T
	*Units
	said syncBuffer
}

type syncBuffer struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (b *syncBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(text)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

func newBed(t *testing.T) *bed {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	b := &bed{t: t, Units: New(plan.Layout{Dir: t.TempDir()}, self)}
	t.Cleanup(func() { must(t, b.Stop(context.Background(), name)) })
	must(t, b.Write(name, b.text("1")))
	return b
}

// text is a unit that waits, for ever.
func (b *bed) text(revision string) string {
	return fmt.Sprintf("[Service]\nWorkingDirectory=/\nEnvironment=KEEL_REVISION=%s\nOOMScoreAdjust=100\n"+
		"ExecStart=/bin/sleep 1000000\n", revision)
}

// supervise runs a supervisor until the returned function is called.
func (b *bed) supervise() (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, &b.said) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("the supervisor ends with %v", err)
		}
	})
}

func (b *bed) state() unit.State {
	b.t.Helper()
	states, err := b.States(b.t.Context(), []string{name})
	must(b.t, err)
	return states[name]
}

func (b *bed) await(what string, is func(unit.State) bool) unit.State {
	b.t.Helper()
	var state unit.State
	b.eventually(what, func() bool { state = b.state(); return is(state) })
	return state
}

func (b *bed) eventually(what string, is func() bool) {
	b.t.Helper()
	if err := wait.PollUntilContextTimeout(b.t.Context(), 20*time.Millisecond, 90*time.Second, true,
		func(context.Context) (bool, error) { return is(), nil }); err != nil {
		b.t.Fatalf("%s: %v; the unit is %+v\n%s", what, err, b.state(), b.said.String())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGKILL))
}

func TestWhatHasEndedIsStartedAgain(t *testing.T) {
	b := newBed(t)
	if state := b.state(); state.Active || state.Enabled {
		t.Errorf("before its start: %+v", state)
	}
	must(t, b.Restart(t.Context(), name))
	first := b.state()
	if !first.Active || first.Enabled || first.Revision != "1" || time.Since(first.Started) > time.Minute {
		t.Fatalf("started: %+v", first)
	}
	score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", first.PID))
	if err != nil || string(score) != "100\n" {
		t.Errorf("its score when memory runs out: %q, %v", score, err)
	}
	stop := b.supervise()
	defer stop()
	b.await("a supervisor runs", func(s unit.State) bool { return s.Enabled })
	if state := b.state(); state.PID != first.PID {
		t.Errorf("the supervisor has started it anew: %+v", state)
	}
	kill(t, first.PID)
	second := b.await("it is started again", func(s unit.State) bool { return s.Active && s.PID != first.PID })
	if second.Restarts != 1 || !strings.Contains(b.said.String(), name+": process") {
		t.Errorf("got %+v, said %q", second, b.said.String())
	}
	stop()
	if state := b.state(); !state.Active || state.PID != second.PID {
		t.Errorf("after the supervisor's end: %+v", state)
	}
}

func TestWhatIsStoppedStaysSo(t *testing.T) {
	b := newBed(t)
	defer b.supervise()()
	must(t, b.Restart(t.Context(), name))
	must(t, b.Stop(t.Context(), name))
	other := "keelson-podgc.service"
	must(t, b.Write(other, b.text("1")))
	defer func() { must(t, b.Stop(context.Background(), other)) }()
	must(t, b.Restart(t.Context(), other))
	pid := b.pid(other)
	kill(t, pid)
	// The supervisor has looked at all of them once the other one is back.
	b.eventually("the other unit comes back", func() bool { now := b.pid(other); return now != pid && now != 0 })
	if state := b.state(); state.Active {
		t.Errorf("it runs again: %+v", state)
	}
}

func (b *bed) pid(name string) int {
	b.t.Helper()
	states, err := b.States(b.t.Context(), []string{name})
	must(b.t, err)
	return states[name].PID
}

// A restart takes what the file says now.
func TestRestartReadsTheUnit(t *testing.T) {
	b := newBed(t)
	must(t, b.Restart(t.Context(), name))
	first := b.state()
	must(t, b.Write(name, b.text("2")))
	must(t, b.Restart(t.Context(), name))
	if state := b.state(); state.Revision != "2" || state.PID == first.PID || alive(first.PID) {
		t.Errorf("got %+v, and the former process lives: %t", state, alive(first.PID))
	}
}

// The keel that started a process may have been killed before it recorded the process.
func TestAProcessThatWasNotRecordedIsFound(t *testing.T) {
	for what, act := range map[string]func(*bed) error{
		"Restart": func(b *bed) error { return b.Restart(b.t.Context(), name) },
		"Stop":    func(b *bed) error { return b.Stop(b.t.Context(), name) },
		"the supervisor": func(b *bed) error {
			r := record{Wanted: true}
			if err := b.save(name, r); err != nil {
				return err
			}
			defer b.supervise()()
			b.await("it is started", func(s unit.State) bool { return s.Active })
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBed(t)
			must(t, b.Restart(t.Context(), name))
			lost := b.state().PID
			must(t, os.Remove(b.Path(name+recordSuffix)))
			bystander, err := subprocess.Start(subprocess.Command{Name: "bystander", Path: "/bin/cat",
				Args: []string{"/dev/zero"}, Env: []string{b.mark(name)}, Log: filepath.Join(t.TempDir(), "log")})
			must(t, err)
			defer func() { must(t, subprocess.Kill(context.Background(), bystander)) }()
			must(t, act(b))
			if alive(lost) {
				t.Error("it still runs")
			}
			if !bystander.Alive() {
				t.Error("what it has started was ended too")
			}
		})
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestOneSupervisorAtATime(t *testing.T) {
	b := newBed(t)
	stop := b.supervise()
	b.await("a supervisor runs", func(s unit.State) bool { return s.Enabled })
	other := &bed{t: t, Units: b.Units}
	defer other.supervise()()
	must(t, b.Restart(t.Context(), name))
	stop()
	first := b.state().PID
	kill(t, first)
	b.await("the second one takes over", func(s unit.State) bool { return s.Active && s.PID != first })
}

func TestForgetLeavesTheUnitsAlone(t *testing.T) {
	b := newBed(t)
	must(t, b.Restart(t.Context(), name))
	must(t, b.Stop(t.Context(), name))
	must(t, b.Forget(t.Context(), name))
	left, err := os.ReadDir(string(b.Folder))
	if err != nil || len(left) != 1 || left[0].Name() != name {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestADamagedRecordIsNamed(t *testing.T) {
	b := newBed(t)
	file := b.Path(name + recordSuffix)
	must(t, os.WriteFile(file, []byte("{"), 0o600))
	if err := b.Restart(t.Context(), name); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
	must(t, os.Remove(file))
}

func TestLogsAreBounded(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "a.log")
	must(t, bound(log, 3)) // it does not exist yet
	writer, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(t, err)
	defer writer.Close()
	for i, row := range []struct{ write, log, kept string }{
		{"abc", "abc", ""}, {"d", "", "abcd"}, {"e", "e", "abcd"}, {"fgh", "", "efgh"},
	} {
		_, err := writer.WriteString(row.write)
		must(t, err)
		must(t, bound(log, 3))
		got, err := os.ReadFile(log)
		must(t, err)
		kept, _ := os.ReadFile(filepath.Join(dir, "a.1.log"))
		if string(got) != row.log || string(kept) != row.kept {
			t.Errorf("%d: got %q and kept %q", i, got, kept)
		}
	}
}

// The supervisor also limits its own log, which gets a line for each start.
func TestTheSupervisorsLogIsBounded(t *testing.T) {
	b := newBed(t)
	log := b.layout.Log(supervisorName)
	must(t, os.MkdirAll(filepath.Dir(log), 0o700))
	must(t, os.WriteFile(log, nil, 0o600))
	must(t, os.Truncate(log, maxLog+1))
	must(t, b.tend(t.Context(), &b.said))
	info, err := os.Stat(log)
	must(t, err)
	if info.Size() != 0 {
		t.Errorf("it has %d bytes", info.Size())
	}
}
