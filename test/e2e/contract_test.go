package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
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
	sockets, err := filepath.Glob(filepath.Join(m.DataDir, "nodes", "*", "containerd.sock"))
	if err != nil || len(sockets) == 0 {
		t.Fatalf("finding the runtimes' sockets: %d, %v", len(sockets), err)
	}
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
			left, err := runcState(m)
			if err != nil || !strings.Contains(left, id) {
				return "", err
			}
			return "its folder among those of runc:\n" + left, nil
		},
	})
}
