package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/unit"
)

// said answers as systemctl and keeps what it was asked.
type said struct {
	out   string
	err   error
	asked []string
}

func (s *said) call(_ context.Context, args ...string) (string, error) {
	s.asked = append(s.asked, strings.Join(args, " "))
	return s.out, s.err
}

func TestStates(t *testing.T) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	proc := t.TempDir()
	environment := "PATH=/bin\x00KEEL_REVISION=abc\x00"
	if err := errors.Join(os.Mkdir(filepath.Join(proc, "42"), 0o755),
		os.WriteFile(filepath.Join(proc, "42", "environ"), []byte(environment), 0o600)); err != nil {
		t.Fatal(err)
	}
	// As systemd 252 prints it, in an order of its own.
	s := &said{out: fmt.Sprintf(`MainPID=42
NRestarts=3
ExecMainStartTimestampMonotonic=%d
Id=a.service
ActiveState=active
UnitFileState=enabled
NeedDaemonReload=no

MainPID=0
NRestarts=0
ExecMainStartTimestampMonotonic=0
Id=b.service
ActiveState=inactive
UnitFileState=
NeedDaemonReload=yes
`, (now.Nano()-int64(time.Minute))/1000)}
	units := &Units{Proc: unit.Proc(proc), Call: s.call}
	states, err := units.States(t.Context(), []string{"a.service", "b.service"})
	if err != nil || len(states) != 2 {
		t.Fatalf("got %v, %v", states, err)
	}
	if a := states["a.service"]; !a.Active || !a.Enabled || a.Stale || a.PID != 42 || a.Restarts != 3 ||
		a.Revision != "abc" || time.Since(a.Started).Round(10*time.Second) != time.Minute {
		t.Errorf("got %+v", a)
	}
	if b := states["b.service"]; b.Active || b.Enabled || !b.Stale || b.PID != 0 || b.Revision != "" {
		t.Errorf("got %+v", b)
	}
	if want := "show --property=" + properties + " a.service b.service"; s.asked[0] != want {
		t.Errorf("asked was %q", s.asked)
	}
	for _, out := range []string{"Id=a\nMainPID=x\n", "Id=a\nMainPID=1\nNRestarts=\n",
		"Id=a\nMainPID=1\nNRestarts=1\nExecMainStartTimestampMonotonic=x\n", ""} {
		s.out = out
		if states, err := units.States(t.Context(), []string{"a"}); err == nil {
			t.Errorf("%q is taken for %v", out, states)
		}
	}
}

func TestReplaced(t *testing.T) {
	proc, program := t.TempDir(), filepath.Join(t.TempDir(), "program")
	write := func() {
		if err := os.WriteFile(program, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write()
	units := &Units{Proc: unit.Proc(proc)}
	if units.Replaced(7, program) {
		t.Error("a process that is gone counts as replaced")
	}
	if err := errors.Join(os.Mkdir(filepath.Join(proc, "7"), 0o755),
		os.Link(program, filepath.Join(proc, "7", "exe"))); err != nil {
		t.Fatal(err)
	}
	if units.Replaced(7, program) {
		t.Error("the same file counts as another one")
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if units.Replaced(7, program) {
		t.Error("a program that is gone counts as another one")
	}
	write()
	if !units.Replaced(7, program) {
		t.Error("another file counts as the same one")
	}
}

func TestFiles(t *testing.T) {
	units := &Units{Folder: unit.Folder(t.TempDir())}
	if err := errors.Join(units.Write("a.service", "A"), units.Write("b.service", "B"),
		os.Symlink("/dev/null", filepath.Join(string(units.Folder), "c.service"))); err != nil {
		t.Fatal(err)
	}
	names := []string{"a.service", "b.service", "c.service", "d.service"}
	files, err := units.Files(names)
	if err != nil || len(files) != 3 || files["a.service"] != "A" || files["c.service"] != "-> /dev/null" {
		t.Errorf("got %v, %v", files, err)
	}
	info, err := os.Stat(filepath.Join(string(units.Folder), "a.service"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("got %v, %v", info, err)
	}
	if err := units.Remove(names); err != nil {
		t.Error(err)
	}
	if files, err = units.Files(names); err != nil || len(files) != 0 {
		t.Errorf("left are %v, %v", files, err)
	}
}

// Stopping or forgetting a unit that systemd does not know succeeds.
func TestUnknownUnits(t *testing.T) {
	s := &said{err: errors.New("running systemctl stop a.service: exit status 5: Unit a.service not loaded")}
	units := &Units{Call: s.call}
	for name, do := range map[string]func(context.Context, ...string) error{"stop": units.Stop,
		"forget": units.Forget} {
		if err := do(t.Context(), "a.service", "b.service"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.asked) != 4 {
		t.Errorf("asked was %q", s.asked)
	}
	s.err = errors.New("running systemctl stop a.service: exit status 1: Access denied")
	for name, do := range map[string]func(context.Context, ...string) error{"stop": units.Stop, "forget": units.Forget,
		"restart": units.Restart} {
		if err := do(t.Context(), "a.service"); !errors.Is(err, s.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
