// Package inprocess runs the mesh in the test's own process, with simulated nodes: the apiserver with its real store,
// the scheduler, the controllers and the collectors, each with the identity that it has in an installation.
package inprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"keelson.dev/kit/logging"
	apiserver "keelson.dev/services/apiserver/inproc"
	podgc "keelson.dev/services/podgc/inproc"
	scheduler "keelson.dev/services/scheduler/inproc"
	workloads "keelson.dev/services/workload-controllers/inproc"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/simnode"
)

// Options choose the mesh's size and parts.
type Options struct {
	// Nodes is how many nodes are simulated.
	Nodes int
	// Guarded fails the test when a daemon, or one of the workload controllers, asks for what it does not declare.
	Guarded bool
	// Without leaves daemons out.
	Without []mesh.Daemon
	// NodeHealth is how patient podgc is; the zero value stands for its defaults. Nodes renew their Leases ten times
	// while they are waited for.
	NodeHealth podgc.NodeHealth
	// RuntimeConfig is what the apiserver serves of the API; empty: all.
	RuntimeConfig map[string]string
}

// libraryErrors are the error lines of the libraries' log, which all meshes of the process share. It is captured before
// any goroutine of a library can read the logger of the process.
var libraryErrors = captureErrors()

// captureErrors keeps the news of the libraries out of the tests' output, where it would hide why one failed.
func captureErrors() *observer.ObservedLogs {
	core, lines := observer.New(zap.ErrorLevel)
	logging.Capture(zap.New(core))
	return lines
}

// tellErrors shows the last of them when the test failed.
func tellErrors(t testing.TB) {
	const last = 20
	if !t.Failed() {
		return
	}
	lines := libraryErrors.All()
	for _, l := range lines[max(0, len(lines)-last):] {
		t.Logf("%s %s: %s %v", l.Time.Format(time.StampMilli), l.LoggerName, l.Message, l.ContextMap())
	}
}

// podRange has a share for each of 65,536 nodes.
const podRange = "10.0.0.0/8"

// Mesh implements mesh.Mesh.
type Mesh struct {
	options    Options
	config     *apiserver.Config
	admin      *rest.Config
	kubeconfig string
	nodes      []string
	running    map[mesh.Daemon]func() error
	refused    func(request string)
	simulated  *simnode.Nodes
}

// New starts a mesh that ends with the test.
func New(t testing.TB, o Options) *Mesh {
	t.Helper()
	dir := t.TempDir()
	m := &Mesh{options: o, running: map[mesh.Daemon]func() error{}, kubeconfig: filepath.Join(dir, "kubeconfig")}
	m.refused = func(request string) { t.Errorf("not declared: %s", request) }
	for i := range o.Nodes {
		m.nodes = append(m.nodes, fmt.Sprintf("node-%d", i))
	}
	var err error
	if m.config, err = serverConfig(dir); err != nil {
		t.Fatalf("preparing the apiserver: %v", err)
	}
	m.config.RuntimeConfig = o.RuntimeConfig
	t.Cleanup(func() {
		m.stopAll(t)
		tellErrors(t)
	})
	for _, d := range mesh.Daemons {
		if !m.isLeftOut(d) {
			m.Start(t, d)
		}
	}
	return m
}

// Admin implements mesh.Mesh.
func (m *Mesh) Admin() *rest.Config { return rest.CopyConfig(m.admin) }

// Kubeconfig implements mesh.Mesh.
func (m *Mesh) Kubeconfig() string { return m.kubeconfig }

// Authority are the files of the authority of client certificates and of its key.
func (m *Mesh) Authority() (certificate, key string) {
	return m.config.ClientCAFile, filepath.Join(filepath.Dir(m.config.ClientCAFile), authorityKey)
}

// Nodes implements mesh.Mesh.
func (m *Mesh) Nodes() []string { return m.nodes }

// RealContainers implements mesh.Mesh.
func (m *Mesh) RealContainers() bool { return false }

// Kill implements mesh.Mesh. A goroutine cannot be killed: this is a clean stop.
func (m *Mesh) Kill(t testing.TB, d mesh.Daemon) {
	t.Helper()
	stop := m.running[d]
	if stop == nil {
		t.Fatalf("%s does not run", d)
	}
	delete(m.running, d)
	if err := stop(); err != nil {
		t.Fatalf("stopping %s: %v", d, err)
	}
}

// AddNode implements mesh.Mesh.
func (m *Mesh) AddNode(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("node-%d", len(m.nodes))
	m.nodes = append(m.nodes, name)
	m.Kill(t, mesh.NodeAgent)
	m.Start(t, mesh.NodeAgent)
	return name
}

// Start implements mesh.Mesh.
func (m *Mesh) Start(t testing.TB, d mesh.Daemon) {
	t.Helper()
	if m.running[d] != nil {
		t.Fatalf("%s runs already", d)
	}
	stop, err := m.start(d)
	if err != nil {
		t.Fatalf("starting %s: %v", d, err)
	}
	m.running[d] = stop
}

func (m *Mesh) start(d mesh.Daemon) (stop func() error, err error) {
	ctx := context.Background()
	switch d {
	case mesh.APIServer:
		return m.startServer(ctx)
	case mesh.Scheduler:
		return scheduler.Start(ctx, scheduler.Config{REST: m.as(d, scheduler.Rules()), Seed: 1}).Stop, nil
	case mesh.WorkloadControllers:
		return m.startControllers(ctx), nil
	case mesh.PodGC:
		return podgc.Start(ctx, podgc.Config{REST: m.as(d, podgc.Rules()), NodeHealth: m.options.NodeHealth}).Stop, nil
	case mesh.NodeAgent:
		return m.startNodes(ctx)
	default:
		return nil, fmt.Errorf("there is no daemon %q", d)
	}
}

func (m *Mesh) startServer(ctx context.Context) (func() error, error) {
	listener, err := listen(m.config)
	if err != nil {
		return nil, err
	}
	// The same port after a restart, so that clients find it again.
	m.config.SecurePort = listener.Addr().(*net.TCPAddr).Port
	config := *m.config
	config.Listener = listener
	h, err := apiserver.Start(ctx, &config, zap.NewNop())
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	m.admin = &rest.Config{
		Host: "https://" + h.Address(), BearerToken: tokens[admin], QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: m.config.TLSCertFile},
	}
	if err := rest.LoadTLSFiles(m.admin); err != nil {
		return nil, fmt.Errorf("reading the apiserver's certificate: %w", err)
	}
	if err := clientcmd.WriteToFile(kubeconfig(m.admin), m.kubeconfig); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return h.Stop, nil
}

func listen(config *apiserver.Config) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(config.BindAddress, fmt.Sprint(config.SecurePort)))
	if err != nil {
		return nil, fmt.Errorf("taking the apiserver's port: %w", err)
	}
	return listener, nil
}

// Second starts a second apiserver on the store of the first, which ends with the test, and returns a connection to it
// with all rights.
func (m *Mesh) Second(t testing.TB) *rest.Config {
	t.Helper()
	config := *m.config
	config.SecurePort = 0
	config.Etcd.Servers = []string{"unix://" + filepath.Join(config.DataDir, "etcd.sock")}
	var err error
	if config.Listener, err = listen(&config); err != nil {
		t.Fatal(err)
	}
	h, err := apiserver.Start(context.Background(), &config, zap.NewNop())
	if err != nil {
		_ = config.Listener.Close()
		t.Fatalf("starting the second apiserver: %v", err)
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Errorf("stopping the second apiserver: %v", err)
		}
	})
	admin := m.Admin()
	admin.Host = "https://" + h.Address()
	return admin
}

func (m *Mesh) startNodes(ctx context.Context) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	patience := cmp.Or(m.options.NodeHealth, podgc.DefaultNodeHealth()).MonitorGrace
	nodes, err := simnode.Start(ctx, m.Admin(), simnode.Options{Names: m.nodes, Renew: patience / 10})
	if err != nil {
		cancel()
		return nil, err
	}
	m.simulated = nodes
	return func() error { cancel(); nodes.Wait(); return nil }, nil
}

// StopNode implements mesh.Mesh.
func (m *Mesh) StopNode(_ testing.TB, name string) { m.simulated.Silence(name) }

// StartNode implements mesh.Mesh.
func (m *Mesh) StartNode(t testing.TB, name string) {
	t.Helper()
	if err := m.simulated.Return(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// startControllers starts the controllers as one daemon; guarded ones are started separately, so that none depends
// on the rights of another.
func (m *Mesh) startControllers(ctx context.Context) (stop func() error) {
	sets := [][]string{workloads.Controllers()}
	if m.options.Guarded {
		sets = nil
		for _, name := range workloads.Controllers() {
			sets = append(sets, []string{name})
		}
	}
	var stops []func() error
	for _, names := range sets {
		config := workloads.Config{REST: m.as(mesh.WorkloadControllers, workloads.Rules(names...)),
			RootCA: m.admin.CAData, Controllers: names}
		config.NodeIPAM.ClusterCIDRs = []string{podRange}
		config.Signing.Certificate, config.Signing.Key = m.Authority()
		stops = append(stops, workloads.Start(ctx, config).Stop)
	}
	return func() error {
		var errs []error
		for _, stop := range stops {
			errs = append(errs, stop())
		}
		return errors.Join(errs...)
	}
}

// as is the connection of a daemon, with the rights that it has in an installation.
func (m *Mesh) as(d mesh.Daemon, rules []rbacv1.PolicyRule) *rest.Config {
	config := m.Admin()
	config.BearerToken = tokens[d]
	if m.options.Guarded {
		return guarded(config, rules, m.refused)
	}
	return config
}

func (m *Mesh) isLeftOut(d mesh.Daemon) bool {
	for _, left := range m.options.Without {
		if left == d {
			return true
		}
	}
	return false
}

// stopAll ends the daemons in reverse order, so that none misses what it needs to give its leases up.
func (m *Mesh) stopAll(t testing.TB) {
	for i := len(mesh.Daemons) - 1; i >= 0; i-- {
		if m.running[mesh.Daemons[i]] != nil {
			m.Kill(t, mesh.Daemons[i])
		}
	}
}

func kubeconfig(config *rest.Config) clientcmdapi.Config {
	const name = "test"
	return clientcmdapi.Config{
		CurrentContext: name,
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:  map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
	}
}
