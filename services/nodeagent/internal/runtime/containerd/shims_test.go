package containerd

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// standIn is set if the test binary itself acts as a shim: to the signal that it ignores, or to "none".
const standIn = "KEELSON_TEST_SHIM"

func TestMain(m *testing.M) {
	if deafTo := os.Getenv(standIn); deafTo != "" {
		if deafTo == "SIGTERM" {
			signal.Ignore(syscall.SIGTERM)
		}
		fmt.Println("ready")
		select {}
	}
	os.Exit(m.Run())
}

// startShim starts a process that looks like a shim, and returns a function that waits for its end.
func startShim(t *testing.T, id, endpoint, deafTo string) (wait func() syscall.Signal) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shim := exec.Command(self)
	shim.Args = []string{"/opt/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", id, "-address", endpoint}
	shim.Env = append(os.Environ(), standIn+"="+deafTo)
	out, err := shim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shim.Process.Kill(); _ = shim.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the stand-in of a shim: %v", err)
	}
	return func() syscall.Signal {
		_ = shim.Wait()
		return shim.ProcessState.Sys().(syscall.WaitStatus).Signal()
	}
}

// A shim without a recorded container or sandbox is asked to end, and killed if it does not. Other shims are left
// alone, and so are another containerd's.
//
// SAF-197
func TestOrphanedShimsEnd(t *testing.T) {
	r := newRuncRoot(t)
	endpoint := filepath.Join(t.TempDir(), "containerd.sock")
	r.config = strings.Replace(r.config, `"stateDir"`, `"containerdEndpoint": "`+endpoint+`", "stateDir"`, 1)
	id := func(c string) string { return strings.Repeat(c, 64) }
	r.recorded, r.recordedSandboxes = []string{id("a")}, []string{id("b")}
	client := New(serve(t, r.server))
	startShim(t, id("a"), endpoint, "none")
	startShim(t, id("b"), endpoint, "none")
	startShim(t, id("c"), endpoint+".other", "none")
	orphan, deaf := startShim(t, id("d"), endpoint, "none"), startShim(t, id("e"), endpoint, "SIGTERM")

	ended, err := client.EndOrphans(t.Context(), r.config, nothingListed)
	slices.Sort(ended)
	if want := []string{id("d"), id("e")}; err != nil || !slices.Equal(ended, want) {
		t.Errorf("ended %v, error %v; want %v", ended, err, want)
	}
	if got := orphan(); got != syscall.SIGTERM {
		t.Errorf("the one that heeds was ended by %v", got)
	}
	if got := deaf(); got != syscall.SIGKILL {
		t.Errorf("the deaf one was ended by %v", got)
	}
	if ended, err := client.EndOrphans(t.Context(), r.config, nothingListed); err != nil || len(ended) > 0 {
		t.Errorf("ended %v afterwards, error %v; want nothing", ended, err)
	}
}
