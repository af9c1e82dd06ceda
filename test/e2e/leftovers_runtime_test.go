package e2e

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// fromContainerd looks at what every node's containerd lists to a command of ctr.
func fromContainerd(command ...string) func(*processes.Mesh) ([]string, error) {
	return func(m *processes.Mesh) ([]string, error) {
		out, err := ctr(m, command...)
		return strings.Fields(out), err
	}
}

// ctr returns what the command prints on all nodes.
func ctr(m *processes.Mesh, command ...string) (string, error) {
	sockets, err := sockets(m)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, socket := range sockets {
		out, err := exec.CommandContext(context.Background(), filepath.Join(scenario.BinDir(), "ctr"),
			append([]string{"--address", socket, "--namespace", "k8s.io"}, command...)...).Output()
		if err != nil {
			return "", fmt.Errorf("ctr %s: %w", strings.Join(command, " "), err)
		}
		all.Write(out)
	}
	return all.String(), nil
}

// sockets returns where the containerds of all nodes listen; there is at least one.
func sockets(m *processes.Mesh) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(m.DataDir, "nodes", "*", "containerd.sock"))
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("finding the runtimes' sockets: %d, %w", len(found), err)
	}
	return found, nil
}

// storedSandboxes returns what containerd keeps of sandboxes beside their containers.
func storedSandboxes(m *processes.Mesh) ([]string, error) {
	return fromTable(m, "RUNTIME", func([]string) bool { return true }, "sandboxes", "list")
}

// sandboxLeases returns those that bear the name of a sandbox. The others are of pulls, and end by themselves.
func sandboxLeases(m *processes.Mesh) ([]string, error) {
	const sandboxID = 64
	all, err := fromContainerd("leases", "list", "--quiet")(m)
	return slices.DeleteFunc(all, func(id string) bool { return len(id) != sandboxID }), err
}

// activeSnapshots returns the writable layers. The others belong to images.
func activeSnapshots(m *processes.Mesh) ([]string, error) {
	return fromTable(m, "KIND", func(fields []string) bool { return slices.Contains(fields, "Active") },
		"snapshots", "list")
}

// fromTable returns the first fields of the lines that count, without the lines that end with the title.
func fromTable(m *processes.Mesh, title string, counts func(fields []string) bool, command ...string) ([]string,
	error) {
	out, err := ctr(m, command...)
	if err != nil {
		return nil, err
	}
	var left []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); fields[len(fields)-1] != title && counts(fields) {
			left = append(left, fields[0])
		}
	}
	return left, nil
}

// shims returns the processes between the nodes' containerds and their containers.
func shims(m *processes.Mesh) ([]string, error) {
	sockets, err := sockets(m)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, socket := range sockets {
		found, err := shimsOf(socket)
		if err != nil {
			return nil, err
		}
		for _, pid := range found {
			command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err == nil { // it has not ended meanwhile
				left = append(left, fmt.Sprintf("%d: %q", pid, strings.Split(string(command), "\x00")))
			}
		}
	}
	return left, nil
}

// leakShim starts a shim on each node as containerd has it started, for a sandbox unknown to all: so one stays whose
// sandbox went while it was still making a container.
func leakShim(t *testing.T, m *processes.Mesh) {
	sockets, err := sockets(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, socket := range sockets {
		bundle := t.TempDir()
		if err := errors.Join(unix.Mkfifo(filepath.Join(bundle, "log"), 0o600),
			os.WriteFile(filepath.Join(bundle, "config.json"), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
		log, err := os.OpenFile(filepath.Join(bundle, "log"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { log.Close() })
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(bundle, "shim.sock"), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		inherited, err := listener.File()
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("%x", sha256.Sum256([]byte(bundle)))
		program := filepath.Join(scenario.BinDir(), "containerd-shim-runc-v2")
		shim := exec.CommandContext(t.Context(), program, "-namespace", "k8s.io", "-id", id, "-address", socket)
		shim.Dir, shim.ExtraFiles = bundle, []*os.File{inherited}
		shim.Env = append(os.Environ(), "TTRPC_ADDRESS="+socket+".ttrpc")
		if err := shim.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() { _ = shim.Wait() }()
		if found, err := shimsOf(socket); err != nil || len(found) == 0 {
			t.Fatalf("of the shim that was started nothing is seen: %v", err)
		}
	}
}
