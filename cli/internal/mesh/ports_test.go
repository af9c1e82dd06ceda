package mesh

import (
	"net"
	"slices"
	"testing"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
)

// A mesh keeps its recorded ports while its own processes hold them, and refuses one that another process holds.
func TestPortsOfRunningProcesses(t *testing.T) {
	const agent, runtime = "nodeagent-node-1", "containerd-node-1"
	for key, process := range map[string]string{agent: agent, plan.StatusPort(agent): agent,
		plan.HealthPort(agent): agent, plan.StreamPort(runtime): runtime} {
		t.Run(key, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			port := listener.Addr().(*net.TCPAddr).Port
			m := &Mesh{Layout: plan.Layout{Dir: t.TempDir()}, State: &state.State{BindAddress: "127.0.0.1",
				Advertise: "127.0.0.1", Nodes: []state.Node{{Name: "node-1"}}, Ports: map[string]int{key: port}}}
			if err := m.decidePorts(Options{}, []string{process}); err != nil || m.State.Ports[key] != port {
				t.Errorf("while %s runs: %v, %v", process, m.State.Ports[key], err)
			}
			others := slices.DeleteFunc([]string{agent, runtime}, func(p string) bool { return p == process })
			m.State.Ports = map[string]int{key: port}
			if err := m.decidePorts(Options{}, others); err == nil {
				t.Errorf("while another listens there: %v", m.State.Ports)
			}
		})
	}
}
