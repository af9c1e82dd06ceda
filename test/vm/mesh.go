package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
)

// dataDir is keel's inside.
const dataDir = "/var/lib/keelson"

// Mesh is what `keel up` has started on a machine. It implements mesh.Mesh, so that every scenario can run there.
type Mesh struct {
	*Machine

	flags  []string
	nodes  int
	admin  *rest.Config
	config string
}

// Up runs `keel up` inside, with further flags. What looks at it from here comes through the apiserver.
func (m *Machine) Up(t testing.TB, flags ...string) *Mesh {
	t.Helper()
	up := &Mesh{Machine: m, flags: flags, nodes: 1, config: filepath.Join(m.dir, "kubeconfig")}
	up.Again(t)
	inside := m.Run(t, "cat", dataDir+"/kubeconfig/admin.kubeconfig")
	config, err := clientcmd.Load([]byte(inside))
	if err != nil {
		t.Fatalf("reading the kubeconfig of %s: %v", m.Name, err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = fmt.Sprintf("https://127.0.0.1:%d", m.ports[apiPort])
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatalf("writing the kubeconfig of %s: %v", m.Name, err)
	}
	if err := os.WriteFile(up.config, content, 0o600); err != nil {
		t.Fatalf("writing the kubeconfig of %s: %v", m.Name, err)
	}
	if up.admin, err = clientcmd.RESTConfigFromKubeConfig(content); err != nil {
		t.Fatalf("reading the kubeconfig of %s: %v", m.Name, err)
	}
	up.admin.QPS = -1
	up.awaitDocument(t)
	return up
}

// awaitDocument waits until the apiserver has made the document by which kubectl checks manifests: the first time takes
// longer here than kubectl waits for it.
func (m *Mesh) awaitDocument(t testing.TB) {
	t.Helper()
	client, err := kubernetes.NewForConfig(m.admin)
	if err != nil {
		t.Fatalf("building the client: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	for {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/openapi/v2").DoRaw(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s does not tell its API: %v", m.Name, err)
		case <-time.After(time.Second):
		}
	}
}

// Again runs the same `keel up` once more, as after a restart of the machine.
func (m *Mesh) Again(t testing.TB) {
	t.Helper()
	m.Keel(t, append([]string{"up", "--nodes", fmt.Sprint(m.nodes), "--sample=false", "--dns=none",
		fmt.Sprintf("--port=%d", apiPort), "--timeout=10m"}, m.flags...)...)
}

// Keel runs keel on the mesh.
func (m *Mesh) Keel(t testing.TB, args ...string) string {
	t.Helper()
	return m.Run(t, append([]string{payloadMount + "/bin/keel", "--data-dir", dataDir}, args...)...)
}

// Admin implements mesh.Mesh.
func (m *Mesh) Admin() *rest.Config { return rest.CopyConfig(m.admin) }

// Kubeconfig implements mesh.Mesh.
func (m *Mesh) Kubeconfig() string { return m.config }

// RealContainers implements mesh.Mesh.
func (m *Mesh) RealContainers() bool { return true }

// Nodes implements mesh.Mesh.
func (m *Mesh) Nodes() []string {
	names := make([]string, m.nodes)
	for i := range names {
		names[i] = fmt.Sprintf("node-%d", i+1)
	}
	return names
}

// AddNode implements mesh.Mesh.
func (m *Mesh) AddNode(t testing.TB) string {
	t.Helper()
	m.nodes++
	m.Again(t)
	return m.Nodes()[m.nodes-1]
}

// Kill implements mesh.Mesh.
func (m *Mesh) Kill(t testing.TB, d mesh.Daemon) {
	t.Helper()
	m.kill(t, func(name string) bool {
		return name == string(d) || d == mesh.NodeAgent && strings.HasPrefix(name, string(d)+"-")
	})
}

// Start implements mesh.Mesh.
func (m *Mesh) Start(t testing.TB, _ mesh.Daemon) {
	t.Helper()
	m.Again(t)
}

// StopNode implements mesh.Mesh.
func (m *Mesh) StopNode(t testing.TB, name string) {
	t.Helper()
	m.kill(t, func(process string) bool { return process == string(mesh.NodeAgent)+"-"+name })
}

// StartNode implements mesh.Mesh.
func (m *Mesh) StartNode(t testing.TB, _ string) {
	t.Helper()
	m.Again(t)
}

// kill ends the processes of keel's that a name stands for.
func (m *Mesh) kill(t testing.TB, which func(name string) bool) {
	t.Helper()
	killed := 0
	for _, p := range m.processes(t) {
		if which(p.Name) {
			m.Run(t, "kill", "-9", fmt.Sprint(p.PID))
			killed++
		}
	}
	if killed == 0 {
		t.Fatalf("keel.json of %s names no such process", m.Name)
	}
}

// processes reads what keel up has started.
func (m *Mesh) processes(t testing.TB) []subprocess.Process {
	t.Helper()
	var state struct {
		Processes []subprocess.Process `json:"processes"`
	}
	if err := json.Unmarshal([]byte(m.Run(t, "cat", dataDir+"/keel.json")), &state); err != nil {
		t.Fatalf("reading keel.json of %s: %v", m.Name, err)
	}
	return state.Processes
}

// argument is the value of a flag of the nodeagent.
func (m *Mesh) argument(t testing.TB, flag string) string {
	t.Helper()
	for _, p := range m.processes(t) {
		if strings.HasPrefix(p.Name, string(mesh.NodeAgent)) {
			i := slices.IndexFunc(p.Args, func(arg string) bool { return strings.HasPrefix(arg, flag+"=") })
			if i >= 0 {
				return strings.TrimPrefix(p.Args[i], flag+"=")
			}
		}
	}
	t.Fatalf("the nodeagent of %s has no %s", m.Name, flag)
	return ""
}

var _ mesh.Mesh = (*Mesh)(nil)

// result is Try for those who wait until something holds inside: no answer is an answer too.
func (m *Machine) result(ctx context.Context, line string) string {
	result, err := m.Try(ctx, "", "sh", "-c", line)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(result.Output)
}
