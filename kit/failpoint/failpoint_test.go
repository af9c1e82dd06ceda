package failpoint

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestInjectUsesTermsFromLeftToRight(t *testing.T) {
	const name = "test/write.before"
	if err := Arm(name, "2*off->1*error(disk full)->1*off->error(gone)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Disarm(name) })
	want := []string{"", "", "disk full", "", "gone", "gone"}
	for i, text := range want {
		err := Inject(name)
		if (err == nil) != (text == "") {
			t.Fatalf("call %d: got %v, want %q", i, err, text)
		}
		if err != nil && (!errors.Is(err, ErrInjected) || !strings.Contains(err.Error(), text)) {
			t.Errorf("call %d: got %v, want an injected failure %q", i, err, text)
		}
	}
	Disarm(name)
	if err := Inject(name); err != nil {
		t.Errorf("disarmed place returned %v", err)
	}
}

// A place is held while its file exists, and not without the file.
func TestHold(t *testing.T) {
	const name = "test/hold.before"
	file := filepath.Join(t.TempDir(), "hold")
	if err := Arm(name, "hold("+file+")"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Disarm(name) })
	if err := Inject(name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	passed := make(chan error, 1)
	go func() { passed <- Inject(name) }()
	select {
	case <-passed:
		t.Fatal("it passed while the file existed")
	case <-time.After(10 * holdInterval):
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := <-passed; err != nil {
		t.Error(err)
	}
}

func TestAroundBracketsAWrite(t *testing.T) {
	for place, want := range map[string]string{"before": "", "after": "done "} {
		if err := Arm("test/write."+place, "error(x)"); err != nil {
			t.Fatal(err)
		}
		done := ""
		err := Around("test/write", func() error { done += "done "; return nil })
		Disarm("test/write." + place)
		if !errors.Is(err, ErrInjected) || done != want {
			t.Errorf("failing %s: %v, and the write was %q", place, err, done)
		}
	}
	own := errors.New("own")
	if err := Around("test/write", func() error { return own }); !errors.Is(err, own) {
		t.Errorf("the write's own error became %v", err)
	}
}

func TestArmRefusesWhatItCannotRead(t *testing.T) {
	for program, sentence := range map[string]string{
		"0*off":       "above 0",
		"x*off":       "above 0",
		"explode":     "allowed are off, error(TEXT), sleep(DURATION), hold(FILE), crash",
		"error(a":     "closing parenthesis",
		"sleep(soon)": "invalid duration",
		"hold":        "lacks the file",
		"hold()":      "lacks the file",
	} {
		err := Arm("test/refused", program)
		if err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: got %v, want an error that says %q", program, err, sentence)
		}
	}
	if got := Armed(); len(got) != 0 {
		t.Errorf("refused programs armed %v", got)
	}
}

func TestArmAllReadsTheEnvironmentForm(t *testing.T) {
	if err := ArmAll(" test/a=off ; test/b=error(x);"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Disarm("test/a"); Disarm("test/b") })
	if got := strings.Join(Armed(), " "); got != "test/a test/b" {
		t.Errorf("armed %q", got)
	}
	if err := ArmAll("test/c"); err == nil {
		t.Error("an item without a program was accepted")
	}
}

func TestCrashEndsTheProcessAtOnce(t *testing.T) {
	if os.Getenv(EnvVar) != "" {
		if err := ArmAll(os.Getenv(EnvVar)); err != nil {
			t.Fatal(err)
		}
		defer os.Exit(0) // Must not run.
		_ = Inject("test/crash")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashEndsTheProcessAtOnce$")
	cmd.Env = append(os.Environ(), EnvVar+"=test/crash=crash")
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("got %v, want the process killed", err)
	}
}

func BenchmarkInjectDisarmed(b *testing.B) {
	for b.Loop() {
		if err := Inject("test/none"); err != nil {
			b.Fatal(err)
		}
	}
}
