package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"keelson.dev/services/nodeagent/inproc/runtimetest"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// expectContract checks the runtime of a node against all that the nodeagent relies on. The nodeagent is down
// meanwhile: it would end what the API does not know.
func expectContract(t *testing.T, m *processes.Mesh) {
	m.Kill(t, mesh.NodeAgent)
	defer m.Start(t, mesh.NodeAgent)
	sockets, err := sockets(m)
	must(t, err)
	before, err := shimsOf(sockets[0])
	must(t, err)
	defer endShims(t, sockets[0], before)
	runtimetest.Run(t, "unix://"+sockets[0], runtimetest.Options{
		Image: scenario.Server, Sleep: []string{"sleep", "infinity"}, End: []string{"sh", "-c", "exit 3"},
		LogDir: t.TempDir(), CgroupParent: m.CgroupRoot() + "/contract", UIDs: "contract",
		Orphan: func(ctx context.Context, id string) error {
			return behindCRI(ctx, sockets[0], "tasks", "start", "--detach", "--null-io", id)
		},
		GiveUp: func(ctx context.Context) (func() (string, error), error) {
			id := fmt.Sprintf("%x", sha256.Sum256([]byte(t.Name())))
			return func() (string, error) { return remains(m, id) }, behindCRI(ctx, sockets[0], "run", "--detach",
				"--null-io", "--label", "io.cri-containerd.kind=sandbox",
				"--runc-root", filepath.Join(filepath.Dir(sockets[0]), "containerd", "runc"),
				"--runc-binary", filepath.Join(scenario.BinDir(), "runc"), scenario.Server, id, "sleep", "infinity")
		},
		Remains: func(id string) (string, error) {
			left, err := leavings["runc's folders"](m)
			if err != nil || !slices.ContainsFunc(left, func(dir string) bool { return filepath.Base(dir) == id }) {
				return "", err
			}
			return "its folder among those of runc", nil
		},
	})
}

// behindCRI has a node's containerd carry a command of ctr out in the namespace of CRI.
func behindCRI(ctx context.Context, socket string, command ...string) error {
	out, err := exec.CommandContext(ctx, filepath.Join(scenario.BinDir(), "ctr"),
		append([]string{"--address", socket, "--namespace", "k8s.io"}, command...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s behind CRI: %w: %s", strings.Join(command, " "), err, out)
	}
	return nil
}

// remains says where the machine still has something that bears the ID of a sandbox.
func remains(m *processes.Mesh, id string) (string, error) {
	var where []string
	for _, what := range []string{"containers", "tasks", "shims", "bundles", "mounts", "runc's folders"} {
		left, err := leavings[what](m)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(left, func(one string) bool { return strings.Contains(one, id) }) {
			where = append(where, what)
		}
	}
	return strings.Join(where, ", "), nil
}

// endShims ends the shims that there were not before. The contract deletes tasks after those of their sandboxes, as it
// happens after starts that failed late: containerd leaves their shims alone then, and the agent is not there.
func endShims(t *testing.T, socket string, before []int) {
	now, err := shimsOf(socket)
	must(t, err)
	for _, pid := range without(now, before) {
		must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
}
