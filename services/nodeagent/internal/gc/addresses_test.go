package gc

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

func TestLostReservations(t *testing.T) {
	now := time.Unix(10000, 0)
	pods := []observed.Pod{{Sandboxes: []observed.Sandbox{{ID: "replaced"}, {ID: "ready", Ready: true}}}}
	for name, row := range map[string]struct {
		sandbox string
		age     time.Duration
		lost    bool
	}{
		"of a sandbox that is ready":       {"ready", time.Hour, false},
		"of a sandbox that is not removed": {"replaced", time.Hour, false},
		"of no sandbox":                    {"failed", 10 * time.Minute, true},
		"of one that may yet be made":      {"failed", 10*time.Minute - time.Second, false},
		"of the future":                    {"failed", -time.Hour, false},
		"of nobody knows whom":             {"", time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := lostReservations([]reservation{{file: "10.0.0.2", sandbox: row.sandbox, since: now.Add(-row.age)}},
				pods, now)
			if lost := slices.Equal(got, []string{"10.0.0.2"}); lost != row.lost || !lost && got != nil {
				t.Errorf("gives %v back, want %v", got, row.lost)
			}
		})
	}
}

// listed is a runtime of which only the list of Pods is used.
type listed struct {
	runtime.Runtime
	pods []observed.Pod
}

func (l listed) ListPods(context.Context) ([]observed.Pod, error) { return l.pods, nil }

// TestAddressesOfFailedSandboxesComeBack creates files as host-local does: one per address, with the sandbox and
// the interface.
func TestAddressesOfFailedSandboxesComeBack(t *testing.T) {
	dir := t.TempDir()
	network := filepath.Join(dir, "bridge")
	if err := os.Mkdir(network, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"lock": "", "last_reserved_ip.0": "10.0.0.4",
		"10.0.0.2": "known\r\neth0", "10.0.0.3": "failed\r\neth0", "fd00::3": "failed\r\neth0",
		"10.0.0.4": "new\r\neth0",
	} {
		file := filepath.Join(network, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if old := time.Now().Add(-time.Hour); name != "10.0.0.4" {
			if err := os.Chtimes(file, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	pods := []observed.Pod{{Sandboxes: []observed.Sandbox{{ID: "known"}}}}
	collector := New(Config{Runtime: listed{pods: pods}, Log: zap.NewNop(), AddressesDir: dir})
	collect := func() []string {
		t.Helper()
		if err := collector.addresses(t.Context()); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(network)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}

	hostLocal, err := os.Open(filepath.Join(network, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(hostLocal.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if got := collect(); len(got) != 6 {
		t.Errorf("while host-local works, only %v is left", got)
	}
	if err := hostLocal.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := collect(), []string{"10.0.0.2", "10.0.0.4", "last_reserved_ip.0", "lock"}; !slices.Equal(got,
		want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}
