package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
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
			out, err := exec.CommandContext(ctx, filepath.Join(scenario.BinDir(), "ctr"), "--address", sockets[0],
				"--namespace", "k8s.io", "tasks", "start", "--detach", "--null-io", id).CombinedOutput()
			if err != nil {
				return fmt.Errorf("starting a task behind CRI: %w: %s", err, out)
			}
			return nil
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

// endShims ends the shims that there were not before. The contract deletes tasks after those of their sandboxes, as it
// happens after starts that failed late: containerd leaves their shims alone then, and the agent does so far, too.
func endShims(t *testing.T, socket string, before []int) {
	now, err := shimsOf(socket)
	must(t, err)
	for _, pid := range without(now, before) {
		must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
}
