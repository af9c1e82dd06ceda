package e2e

import (
	"syscall"
	"testing"

	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// patience lets podgc wait half a minute for a node: agents renew their Lease every 10 seconds, and may be late on a
// busy machine.
var patience = []string{"--node-monitor-grace-period=30s", "--node-eviction-rate=10"}

// The agent of one node of two is stopped and wakes up long after it was given up, and podgc dies between saying that
// the node is silent and what follows from that. Another time the agent is killed.
func TestNodeFailure(t *testing.T) {
	m := processes.New(t, 2)
	m.Restart(t, mesh.PodGC, patience...)
	// What a subtest has started ends with it.
	t.Run("Stopped", func(t *testing.T) { scenario.NodeFailure(t, sleeper{m}) })
	m.Restart(t, mesh.PodGC, patience...)
	t.Run("Killed", func(t *testing.T) { scenario.NodeFailure(t, m) })
}

// sleeper is a mesh whose agents are stopped by SIGSTOP.
type sleeper struct{ *processes.Mesh }

// StopNode implements mesh.Mesh.
func (s sleeper) StopNode(t testing.TB, name string) {
	t.Helper()
	agent := s.agent(t, name)
	signal(t, agent, syscall.SIGSTOP)
	t.Cleanup(func() { signal(t, agent, syscall.SIGCONT) })
	killAt(scenario.In(t, s), s.Mesh, mesh.PodGC, "podgc/node.status.after=crash", func() string { return "" })
	s.Restart(t, mesh.PodGC, patience...)
}

// StartNode implements mesh.Mesh.
func (s sleeper) StartNode(t testing.TB, name string) {
	t.Helper()
	signal(t, s.agent(t, name), syscall.SIGCONT)
}

func (s sleeper) agent(t testing.TB, node string) subprocess.Process {
	t.Helper()
	for _, p := range s.Of(t, mesh.NodeAgent) {
		if p.Name == string(mesh.NodeAgent)+"-"+node {
			return p
		}
	}
	t.Fatalf("there is no node %s", node)
	return subprocess.Process{}
}
