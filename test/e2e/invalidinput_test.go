package e2e

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestInvalidInputError gives every program what it cannot work with: it ends at once with one clear line, and
// status 2 where the user is to correct something.
func TestInvalidInputError(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })
	_, port, err := net.SplitHostPort(busy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	if err := os.Chown(foreign, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	strangers := t.TempDir()
	if err := os.WriteFile(filepath.Join(strangers, "letter.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		program string
		args    []string
		status  int
		want    string
	}{
		"apiserver, unknown flag": {"keelson-apiserver", []string{"--nope"}, 2, "unknown flag: --nope"},
		"apiserver, no CIDR": {"keelson-apiserver", []string{"--service-cluster-ip-range=ten"}, 2,
			`--service-cluster-ip-range: "ten" is not a CIDR`},
		"apiserver, occupied port": {"keelson-apiserver", []string{"--log-level=error", "--data-dir",
			t.TempDir(), "--bind-address=127.0.0.1", "--secure-port", port}, 2, "address already in use"},
		"apiserver, somebody else's data": {"keelson-apiserver", []string{"--log-level=error", "--data-dir", foreign,
			"--bind-address=127.0.0.1", "--secure-port=0"}, 2, "12345"},
		"apiserver, occupied status port": {"keelson-apiserver", []string{"--data-dir", t.TempDir(),
			"--status-address", busy.Addr().String()}, 2, "--status-address"},
		"scheduler, no kubeconfig": {"keelson-scheduler", []string{"--kubeconfig=/does/not/exist"}, 2,
			"--kubeconfig: stat /does/not/exist"},
		"controllers, unknown controller": {"keelson-workload-controllers", []string{"--kubeconfig=/dev/null",
			"--controllers=deploymint"}, 2, "deploymint"},
		"podgc, argument": {"keelson-podgc", []string{"collect"}, 2, `unexpected argument "collect"`},
		"nodeagent, log level": {"keelson-nodeagent", []string{"--log-level=loud"}, 2,
			"allowed are debug, info, warn, error"},
		"keel, unknown flag": {"keel", []string{"up", "--bogus"}, 2, "--bogus"},
		"keel, too few nodes": {"keel", []string{"up", "--nodes=-1"}, 2,
			"--nodes: -1 must be between 0 and"},
		"keel, somebody else's folder": {"keel", []string{"up", "--data-dir", foreign}, 1,
			"belongs to user 12345"},
		"keel, a folder with other files": {"keel", []string{"up", "--data-dir", strangers}, 1,
			"holds files and no keel.json"},
		"keel, kubeconfig of no mesh": {"keel", []string{"kubeconfig", "--data-dir", t.TempDir()}, 1, "keel up"},
		"keel, explain without a mesh": {"keel", []string{"explain", "pod", "x", "--data-dir", t.TempDir()}, 1,
			"keel up"},
		"keel, occupied port of the server": {"keel", []string{"up", "--nodes=0", "--sample=false",
			"--port", port, "--data-dir", t.TempDir()}, 1, port},
	} {
		t.Run(name, func(t *testing.T) { expectLine(t, test.program, test.args, test.status, test.want) })
	}
}

func expectLine(t *testing.T, program string, args []string, status int, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(scenario.BinDir(), program), args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	err := command.Run()
	if command.ProcessState == nil {
		t.Fatalf("running %s: %v", program, err)
	}
	if code := command.ProcessState.ExitCode(); code != status {
		t.Errorf("status %d, want %d", code, status)
	}
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, want) {
		t.Errorf("the last line %q does not say %q", last, want)
	}
	if status == 2 && len(lines) != 1 {
		t.Errorf("%d lines:\n%s", len(lines), stderr.String())
	}
}

// TestDataDirectoryLock starts an apiserver on the data of one that runs, and a second `keel up` on a mesh that
// is up.
func TestDataDirectoryLock(t *testing.T) {
	m := processes.Shared(t, 0)
	expectLine(t, "keelson-apiserver", []string{
		"--data-dir", filepath.Join(m.DataDir, "apiserver"), "--bind-address=127.0.0.1", "--secure-port=0",
		"--log-level=error",
	}, 2, "in use")
	before := m.Of(t, "apiserver")[0].PID
	if out, err := m.Keel(t.Context(), "up", "--sample=false"); err != nil {
		t.Errorf("a second keel up: %v\n%s", err, out)
	}
	if after := m.Of(t, "apiserver")[0].PID; after != before {
		t.Errorf("a second keel up replaced process %d by %d", before, after)
	}
}
