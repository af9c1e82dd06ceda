package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/kit/nettest"
	"keelson.dev/test/mesh/processes"
)

// TestDownAfterMeshDied lets everything of a mesh that runs die by SIGKILL: its namespaces, links, tables, mounts,
// cgroups and sockets stay. Another mesh comes up beside them, runs Pods, and leaves nothing of itself; then keel down
// of the first one removes what that has left.
func TestDownAfterMeshDied(t *testing.T) {
	before, sockets := nettest.Standing(t), shimSockets(t)
	dead := processes.New(t, 2)
	makeBusy(t, dead)
	killEverything(t, dead)
	remains := nettest.Standing(t)
	if len(without(remains, before)) == 0 {
		t.Fatal("nothing is left of the mesh, so the test shows nothing")
	}
	alive := processes.New(t, 2)
	makeBusy(t, alive)
	takeDown(t, alive, remains)
	if left := without(remains, nettest.Standing(t)); len(left) > 0 {
		t.Errorf("the other mesh took along what was not its own:\n%s", strings.Join(left, "\n"))
	}
	takeDown(t, dead, before)
	for _, m := range []*processes.Mesh{dead, alive} {
		if left, err := mountsBelow(m.DataDir); err != nil || len(left) > 0 {
			t.Errorf("mounts of %s: %v, %v", m.DataDir, left, err)
		}
		for _, root := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
			if left, err := filepath.Glob(root + "keelson-" + meshID(m)); err != nil || len(left) > 0 {
				t.Errorf("cgroups of %s: %v, %v", m.DataDir, left, err)
			}
		}
	}
	if left := without(shimSockets(t), sockets); len(left) > 0 {
		t.Errorf("sockets of shims: %v", left)
	}
}

// makeBusy has a mesh run Pods and a Service.
func makeBusy(t *testing.T, m *processes.Mesh) {
	t.Helper()
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, client, "one", "two")
	awaitService(t, client, "one")
}

// killEverything kills what runs of a mesh until nothing does: daemons, containerds, shims and containers. They are
// known by their data directory and by their cgroups.
func killEverything(t *testing.T, m *processes.Mesh) {
	t.Helper()
	cgroup := []byte("/keelson-" + meshID(m) + "/")
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			files, err := filepath.Glob("/proc/[0-9]*")
			if err != nil {
				return false, err
			}
			none := true
			for _, process := range files {
				command, _ := os.ReadFile(filepath.Join(process, "cmdline")) // it may have ended
				groups, _ := os.ReadFile(filepath.Join(process, "cgroup"))
				pid, err := strconv.Atoi(filepath.Base(process))
				ours := bytes.Contains(command, []byte(m.DataDir+"/")) ||
					len(command) > 0 && bytes.Contains(groups, cgroup)
				if err != nil || !ours {
					continue
				}
				none = false
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return none, nil
		}); err != nil {
		t.Fatalf("killing all of a mesh: %v", err)
	}
}
