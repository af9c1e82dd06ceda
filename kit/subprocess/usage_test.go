package subprocess

import (
	"os"
	"testing"
	"time"
)

func TestParseUsage(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 15 16 9 18 19 20 1000 22\n"
	want := Usage{CPU: 2 * time.Second, Memory: 4096000, Threads: 9}
	for _, name := range []string{"keelson-apiserver", "a (b) c", "x) y"} {
		if got, err := parseUsage("42 ("+name+")"+rest, 4096); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	for _, stat := range []string{"", "42 (a) S 1 2",
		"42 (a) S 1 2 3 4 5 6 7 8 9 10 x 50 13 14 15 16 9 18 19 20 1000 22"} {
		if got, err := parseUsage(stat, 4096); err == nil {
			t.Errorf("%q is %+v", stat, got)
		}
	}
}

func TestUsageOf(t *testing.T) {
	got, err := UsageOf(os.Getpid())
	if err != nil || got.Memory < 1<<20 || got.Threads < 1 {
		t.Errorf("this process: %+v, %v", got, err)
	}
	if got, err := UsageOf(0); err == nil {
		t.Errorf("no process: %+v", got)
	}
}
