// Package processes runs the mesh as an operator does: `keel up` starts the daemons as processes, with containerd and
// real containers on every node.
package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/namespaces"
	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/scenario"
)

// logLines is how much of each log a failed test shows.
const logLines = 5

// upTimeout bounds one call of keel.
const upTimeout = 5 * time.Minute

// Mesh implements mesh.Mesh.
type Mesh struct {
	// DataDir is what keel was told.
	DataDir string

	nodes  int
	flags  []string
	admin  *rest.Config
	config string
	// restarted are the processes that took the place of keel's, by name.
	restarted map[string]subprocess.Process
}

// WithDNS asks for a mesh with cluster DNS: most tests look no names up, and its Pods would be among those they
// count.
const WithDNS = "--dns=coredns"

// WithChart asks for a mesh whose nodes have the images of the chart's Pods too.
func WithChart() string { return "--images=" + filepath.Join(scenario.BinDir(), "images") }

// New brings a mesh up that goes down with the test, by further flags of `keel up`. A test that fails leaves the last
// lines of every daemon's log.
func New(t testing.TB, nodes int, flags ...string) *Mesh {
	t.Helper()
	m := newMesh(t, nodes, flags...)
	t.Cleanup(func() {
		if t.Failed() {
			m.showLogs(t)
		}
		if err := m.down(); err != nil {
			t.Error(err)
		}
	})
	if err := m.begin(); err != nil {
		t.Fatal(err)
	}
	return m
}

// newMesh is one that is not up yet.
func newMesh(t testing.TB, nodes int, flags ...string) *Mesh {
	t.Helper()
	flags = append(Known(t, "keel", []string{"up"}, []string{"--dns=none"}), flags...)
	dir := ShortDir(t)
	if !slices.Contains(flags, WithChart()) {
		flags = append(flags, "--images="+testImages(t, dir, slices.Contains(flags, WithDNS)))
	}
	return &Mesh{DataDir: dir, nodes: nodes, restarted: map[string]subprocess.Process{}, flags: flags}
}

// ShortDir makes a folder whose path leaves room for those of sockets, of which the kernel takes 108 bytes. The caller
// removes it.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "keel")
	if err != nil {
		t.Fatalf("making the data directory: %v", err)
	}
	return dir
}

// testImages is a folder beside the data directory with the images that tests run, that of cluster DNS among them if
// dns is true. Importing those of the chart too would take most of the time until a mesh is up.
func testImages(t testing.TB, dataDir string, dns bool) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(scenario.BinDir(), "images", "*.tar"))
	if err != nil || len(all) == 0 {
		t.Fatalf("there are no images (make images): %v", err)
	}
	dir := dataDir + ".images"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, archive := range all {
		name := filepath.Base(archive)
		if strings.HasPrefix(name, "keelson-") || name == "coredns.tar" && !dns {
			continue
		}
		if err := os.Symlink(archive, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// begin brings the mesh up for the first time.
func (m *Mesh) begin() error {
	if err := m.start(); err != nil {
		return err
	}
	m.config = filepath.Join(m.DataDir, "kubeconfig", "admin.kubeconfig")
	admin, err := clientcmd.BuildConfigFromFlags("", m.config)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	admin.QPS = -1
	m.admin = admin
	return nil
}

// down ends the mesh and removes its folder.
func (m *Mesh) down() error {
	if out, err := m.Keel(context.Background(), "down"); err != nil {
		return fmt.Errorf("keel down: %w\n%s", err, out)
	}
	if err := errors.Join(os.RemoveAll(m.DataDir), os.RemoveAll(m.DataDir+".images")); err != nil {
		return fmt.Errorf("removing the data directory after keel down: %w", err)
	}
	return nil
}

// Admin implements mesh.Mesh.
func (m *Mesh) Admin() *rest.Config { return rest.CopyConfig(m.admin) }

// Kubeconfig implements mesh.Mesh.
func (m *Mesh) Kubeconfig() string { return m.config }

// RealContainers implements mesh.Mesh.
func (m *Mesh) RealContainers() bool { return true }

// Nodes implements mesh.Mesh.
func (m *Mesh) Nodes() []string {
	var names []string
	for _, p := range m.processes() {
		if name, ok := strings.CutPrefix(p.Name, string(mesh.NodeAgent)+"-"); ok {
			names = append(names, name)
		}
	}
	return names
}

// AddNode implements mesh.Mesh.
func (m *Mesh) AddNode(t testing.TB) string {
	t.Helper()
	before := m.Nodes()
	m.nodes++
	m.up(t)
	for _, name := range m.Nodes() {
		if !slices.Contains(before, name) {
			return name
		}
	}
	t.Fatalf("there are still the nodes %v alone", before)
	return ""
}

// Kill implements mesh.Mesh.
func (m *Mesh) Kill(t testing.TB, d mesh.Daemon) {
	t.Helper()
	for _, p := range m.Of(t, d) {
		if err := subprocess.Kill(context.Background(), p); err != nil {
			t.Fatalf("killing %s: %v", p.Name, err)
		}
	}
}

// Start implements mesh.Mesh.
func (m *Mesh) Start(t testing.TB, _ mesh.Daemon) {
	t.Helper()
	m.up(t)
}

// Of returns the processes of a daemon, one for each node where it is the nodeagent.
func (m *Mesh) Of(t testing.TB, d mesh.Daemon) []subprocess.Process {
	t.Helper()
	var found []subprocess.Process
	for _, p := range m.processes() {
		if p.Name == string(d) || d == mesh.NodeAgent && strings.HasPrefix(p.Name, string(d)+"-") {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		t.Fatalf("keel.json names no %s", d)
	}
	return found
}

// Argument is the value of a flag that a process was started with; empty without it.
func Argument(p subprocess.Process, flag string) string {
	for _, arg := range p.Args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}

// StartCopy starts a second copy of a daemon, with the same arguments but a status address of its own. It is killed
// when the test ends, if it still runs.
func (m *Mesh) StartCopy(t testing.TB, d mesh.Daemon) subprocess.Process {
	t.Helper()
	return m.startCopy(t, m.Of(t, d)[0].Command)
}

// StartCopyOn is StartCopy in the network of a node, and with further arguments.
func (m *Mesh) StartCopyOn(t testing.TB, d mesh.Daemon, node string, args ...string) subprocess.Process {
	t.Helper()
	command := m.Of(t, d)[0].Command
	command.NetNS = m.agent(t, node).NetNS
	command.Args = append(slices.Clone(command.Args), args...)
	return m.startCopy(t, command)
}

func (m *Mesh) startCopy(t testing.TB, command subprocess.Command) subprocess.Process {
	t.Helper()
	command.Name += "-copy"
	command.Log = filepath.Join(m.DataDir, "logs", command.Name+".log")
	args := make([]string, len(command.Args))
	for i, arg := range command.Args {
		if strings.HasPrefix(arg, "--status-address=") {
			arg = "--status-address=127.0.0.1:0"
		}
		args[i] = arg
	}
	command.Args = args
	p, err := subprocess.Start(command)
	if err != nil {
		t.Fatalf("starting %s: %v", command.Name, err)
	}
	t.Cleanup(func() { _ = subprocess.Kill(context.Background(), p) })
	return p
}

// Keel runs keel on this mesh and returns what it printed.
func (m *Mesh) Keel(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	var out bytes.Buffer
	err := Program(ctx, &out, append([]string{"keel", "--data-dir", m.DataDir}, args...)...).Run()
	return out.String(), err
}

// Program is a run of one of our programs that writes to out. It finds no other one: what keel starts must not lean on
// what this machine happens to have.
func Program(ctx context.Context, out io.Writer, command ...string) *exec.Cmd {
	run := exec.CommandContext(ctx, filepath.Join(scenario.BinDir(), command[0]), command[1:]...)
	run.Env = append(os.Environ(), "PATH="+scenario.BinDir())
	run.Stdout, run.Stderr = out, out
	return run
}

func (m *Mesh) up(t testing.TB) {
	t.Helper()
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
}

// start has keel start what does not run.
func (m *Mesh) start() error {
	out, err := m.Keel(context.Background(), append([]string{"up", "--nodes", fmt.Sprint(m.nodes), "--sample=false",
		"--bind-address=0.0.0.0"}, m.flags...)...)
	if err != nil {
		return fmt.Errorf("keel up: %w\n%s", err, out)
	}
	return nil
}

// processes reads what keel up has started, in the order of the names.
func (m *Mesh) processes() []subprocess.Process {
	content, err := os.ReadFile(filepath.Join(m.DataDir, "keel.json"))
	if err != nil {
		return nil
	}
	var state struct {
		Processes []subprocess.Process `json:"processes"`
	}
	if err := json.Unmarshal(content, &state); err != nil {
		return nil
	}
	for i, p := range state.Processes {
		if now, ok := m.restarted[p.Name]; ok {
			state.Processes[i] = now
		}
	}
	// keel has those last that it started last.
	slices.SortFunc(state.Processes, func(a, b subprocess.Process) int { return strings.Compare(a.Name, b.Name) })
	return state.Processes
}

// OnNode does something among the mounts of a node and under its host name.
func (m *Mesh) OnNode(name string, do func() error) error {
	for _, p := range m.processes() {
		if p.Name == string(mesh.NodeAgent)+"-"+name {
			return namespaces.Files{UTS: p.UTSNS, Mount: p.MountNS}.Do(do)
		}
	}
	return fmt.Errorf("there is no node %s", name)
}

func (m *Mesh) showLogs(t testing.TB) { ShowLogs(t, m.DataDir) }

// ShowLogs shows the last lines of every log of a data directory.
func ShowLogs(t testing.TB, dataDir string) {
	logs, err := filepath.Glob(filepath.Join(dataDir, "logs", "*.log"))
	if err != nil {
		return
	}
	for _, log := range logs {
		lines, err := subprocess.Tail(log, 0, logLines)
		t.Logf("the end of %s (%v):\n%s", filepath.Base(log), err, strings.Join(lines, "\n"))
	}
}

// CgroupRoot is the cgroup above all Pods of the mesh, as its nodeagents were told.
func (m *Mesh) CgroupRoot() string {
	for _, p := range m.processes() {
		for _, arg := range p.Args {
			if root, ok := strings.CutPrefix(arg, "--cgroup-root="); ok {
				return root
			}
		}
	}
	return ""
}

// StopNode implements mesh.Mesh.
func (m *Mesh) StopNode(t testing.TB, name string) {
	t.Helper()
	if err := subprocess.Kill(context.Background(), m.agent(t, name)); err != nil {
		t.Fatalf("killing the agent of %s: %v", name, err)
	}
}

// StartNode implements mesh.Mesh.
func (m *Mesh) StartNode(t testing.TB, name string) {
	t.Helper()
	m.StartNodeWith(t, name)
}

// StartNodeWith is StartNode with further arguments of the node's agent, until the test ends. keel knows nothing of it.
func (m *Mesh) StartNodeWith(t testing.TB, name string, args ...string) {
	t.Helper()
	command := m.agent(t, name).Command
	command.Args = append(slices.Clone(command.Args), args...)
	m.replace(t, command)
}

// Restart ends a daemon, on every node where it is the nodeagent, and starts it with further arguments, until the test
// ends. keel knows nothing of it.
func (m *Mesh) Restart(t testing.TB, d mesh.Daemon, args ...string) {
	t.Helper()
	m.Kill(t, d)
	for _, p := range m.Of(t, d) {
		command := p.Command
		command.Args = append(slices.Clone(command.Args), args...)
		m.replace(t, command)
	}
}

// agent is the process of a node's agent.
func (m *Mesh) agent(t testing.TB, node string) subprocess.Process {
	t.Helper()
	for _, p := range m.Of(t, mesh.NodeAgent) {
		if p.Name == string(mesh.NodeAgent)+"-"+node {
			return p
		}
	}
	t.Fatalf("there is no node %s", node)
	return subprocess.Process{}
}

// replace starts a process in the place of the one of its name that has ended.
func (m *Mesh) replace(t testing.TB, command subprocess.Command) {
	t.Helper()
	p, err := subprocess.Start(command)
	if err != nil {
		t.Fatalf("starting %s: %v", command.Name, err)
	}
	m.restarted[command.Name] = p
	t.Cleanup(func() { _ = subprocess.Kill(context.Background(), p) })
}

// StartArmed starts a killed daemon with failpoints, as keel would without them. It is expected to die of them.
func (m *Mesh) StartArmed(t testing.TB, d mesh.Daemon, failpoints string) subprocess.Process {
	t.Helper()
	command := m.Of(t, d)[0].Command
	command.Env = append(command.Env, failpoint.EnvVar+"="+failpoints)
	p, err := subprocess.Start(command)
	if err != nil {
		t.Fatalf("starting %s with failpoints: %v", d, err)
	}
	t.Cleanup(func() { _ = subprocess.Kill(context.Background(), p) })
	return p
}
