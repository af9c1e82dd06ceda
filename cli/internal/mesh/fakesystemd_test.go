package mesh

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"k8s.io/client-go/tools/clientcmd"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/systemd"
	"keelson.dev/cli/internal/unit"
)

// errCut is the error of an interrupted systemctl.
var errCut = errors.New("keel was ended")

// fakeSystemd does with the units of a folder what keel sees systemd do. A unit that it starts answers, in this
// process, as the mesh's daemon would.
type fakeSystemd struct {
	t         *testing.T
	dir, proc string
	// loaded is what systemd has read of the files.
	loaded  map[string]string
	enabled map[string]bool
	running map[string]*fakeProcess
	nextPID int
	// wanted are the units that there are to be.
	wanted []string
	// calls are the verbs and units, without what is only asked.
	calls []string
	// cut interrupts keel at a call that changes something, counted from 1; after is set if that call still takes
	// effect.
	cut   int
	after bool
	// killed makes that call end keel as SIGKILL would: keel does nothing afterwards.
	killed bool
	// pod is set if the runtime has a Pod.
	pod atomic.Bool
	// broken is a unit whose process never gets ready; restarts counts its ends.
	broken   string
	restarts int
}

// A program with one of these comments never gets ready, or cannot be started.
const (
	brokenProgram     = "# broken"
	impossibleProgram = "# impossible"
)

type fakeProcess struct {
	pid    int
	broken bool
	close  func()
}

// newFakeSystemd returns a fakeSystemd without units.
func newFakeSystemd(t *testing.T) *fakeSystemd {
	f := &fakeSystemd{t: t, dir: t.TempDir(), proc: t.TempDir(), loaded: map[string]string{},
		wanted: plan.UnitNames(), enabled: map[string]bool{}, running: map[string]*fakeProcess{}, nextPID: 1}
	t.Cleanup(func() {
		for name := range f.running {
			f.stop(name)
		}
	})
	return f
}

// cutAt runs keel, interrupts it at a call, and reports whether it reached that call.
func (f *fakeSystemd) cutAt(t *testing.T, call int, after bool, run func(*testing.T) error) (cut bool) {
	t.Helper()
	f.cut, f.after = call, after
	err := run(t)
	f.cut = 0
	if err != nil && !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	return err != nil
}

func (f *fakeSystemd) units() *systemd.Units {
	return &systemd.Units{Folder: unit.Folder(f.dir), Proc: unit.Proc(f.proc), Call: f.call}
}

func (f *fakeSystemd) call(_ context.Context, args ...string) (string, error) {
	verb, names := args[0], args[1:]
	if verb == "show" {
		return f.show(names[1:]), nil
	}
	f.calls = append(f.calls, strings.Join(args, " "))
	last := len(f.calls) == f.cut
	if last && f.killed && !f.after {
		panic(errCut)
	}
	if last && !f.after {
		return "", errCut
	}
	err := f.change(verb, names)
	if last && f.killed {
		panic(errCut)
	}
	if last {
		return "", errCut
	}
	return "", err
}

func (f *fakeSystemd) change(verb string, names []string) error {
	if verb == "daemon-reload" {
		for _, name := range plan.UnitNames() {
			delete(f.loaded, name)
			f.load(name)
		}
	}
	for _, name := range names {
		if !f.load(name) {
			return fmt.Errorf("exit status 5: Unit %s not loaded", name)
		}
		switch verb {
		case "enable":
			f.enabled[name] = true
		case "disable":
			delete(f.enabled, name)
		case "stop":
			f.stop(name)
		case "restart":
			f.stop(name)
			if err := f.start(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// load makes systemd read a unit. It reads a unit that it knows again only at a reload.
func (f *fakeSystemd) load(name string) bool {
	if _, ok := f.loaded[name]; ok {
		return true
	}
	content, err := os.ReadFile(filepath.Join(f.dir, name))
	if err == nil {
		f.loaded[name] = string(content)
	}
	return err == nil
}

func (f *fakeSystemd) show(names []string) string {
	var out strings.Builder
	for _, name := range names {
		active, enabled, stale, pid := "inactive", "disabled", "no", 0
		if process := f.running[name]; process != nil {
			active, pid = "active", process.pid
		}
		if f.enabled[name] {
			enabled = "enabled"
		}
		if content, err := os.ReadFile(filepath.Join(f.dir, name)); f.loaded[name] != "" &&
			(err != nil || f.loaded[name] != string(content)) {
			stale = "yes"
		}
		if process := f.running[name]; process != nil && process.broken {
			f.restarts++
		}
		fmt.Fprintf(&out, "MainPID=%d\nNRestarts=%d\nExecMainStartTimestampMonotonic=%d\nId=%s\nActiveState=%s\n"+
			"UnitFileState=%s\nNeedDaemonReload=%s\n\n", pid, f.restarts, monotonic()/1000, name, active, enabled,
			stale)
	}
	return out.String()
}

func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}

func (f *fakeSystemd) stop(name string) {
	process := f.running[name]
	if process == nil {
		return
	}
	process.close()
	_ = os.RemoveAll(filepath.Join(f.proc, strconv.Itoa(process.pid)))
	delete(f.running, name)
}

// start runs what the unit says, as systemd has read it.
func (f *fakeSystemd) start(name string) error {
	environment, argv := execution(f.loaded[name])
	program, err := os.ReadFile(argv[0])
	if err != nil || bytes.Contains(program, []byte(impossibleProgram)) {
		return fmt.Errorf("job for %s failed: %w", name, errors.Join(err, errors.New("status=203/EXEC")))
	}
	process := &fakeProcess{pid: f.nextPID, close: func() {},
		broken: name == f.broken || bytes.Contains(program, []byte(brokenProgram))}
	f.nextPID++
	dir := filepath.Join(f.proc, strconv.Itoa(process.pid))
	err = errors.Join(os.Mkdir(dir, 0o755), os.Link(argv[0], filepath.Join(dir, "exe")),
		os.WriteFile(filepath.Join(dir, "environ"), []byte(strings.Join(environment, "\x00")), 0o600))
	if err != nil {
		f.t.Fatal(err)
	}
	f.running[name] = process
	switch {
	case process.broken:
	case filepath.Base(argv[0]) == "containerd":
		process.close = f.runtime(filepath.Dir(filepath.Dir(argv[2])))
	default:
		process.close = f.daemon(argv[1:])
	}
	return nil
}

// execution reads a unit's environment and command.
func execution(unit string) (environment, argv []string) {
	for line := range strings.Lines(strings.ReplaceAll(unit, "\\\n", "")) {
		if value, ok := strings.CutPrefix(line, "Environment="); ok {
			environment = append(environment, strings.TrimSpace(value))
		}
		if value, ok := strings.CutPrefix(line, "ExecStart="); ok {
			argv = strings.Fields(value)
		}
	}
	return environment, argv
}

// daemon answers at the address at which it is asked whether it is ready, and as the API.
func (f *fakeSystemd) daemon(args []string) (stop func()) {
	flags := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		flags[name] = value
	}
	address, certificate := flags["--status-address"], "--status-"
	if port, ok := flags["--secure-port"]; ok {
		address, certificate = flags["--bind-address"]+":"+port, "--tls-"
	}
	key := flags["--status-key-file"]
	if certificate == "--tls-" {
		key = flags["--tls-private-key-file"]
	}
	var pair tls.Certificate
	if key == "" { // a worker's
		f.bootstrap(flags["--bootstrap-kubeconfig"], flags["--kubeconfig"])
		pair = madeInMemory(f.t)
	} else {
		var err error
		if pair, err = tls.LoadX509KeyPair(flags[certificate+"cert-file"], key); err != nil {
			f.t.Fatal(err)
		}
	}
	listener, err := tls.Listen("tcp", address, &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		f.t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(answer),
		ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }
}

// bootstrap writes an agent's kubeconfig with nodeCredential from its bootstrap kubeconfig, unless it has one.
func (f *fakeSystemd) bootstrap(from, to string) {
	if _, err := os.Stat(to); err == nil {
		return
	}
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		f.t.Errorf("the agent has nothing to ask by: %v", err)
		return
	}
	for _, user := range config.AuthInfos {
		user.Token = nodeCredential
	}
	if err := clientcmd.WriteToFile(*config, to); err != nil {
		f.t.Fatal(err)
	}
}

// madeInMemory returns a certificate that no authority of the mesh has signed.
func madeInMemory(t *testing.T) tls.Certificate {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.TLS.Certificates[0]
}

func answer(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, "/api/v1/nodes/")
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind": "Node", "apiVersion": "v1", "metadata": {"name": %q},
"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`, name)
}

// fakeRuntime has at most one Pod, which it removes only if it found a network at its start.
type fakeRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	pod     *atomic.Bool
	network bool
}

func (fakeRuntime) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{}, nil
}

func (f fakeRuntime) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest,
) (*runtimeapi.ListPodSandboxResponse, error) {
	if f.pod.Load() {
		return &runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{{Id: "pod"}}}, nil
	}
	return &runtimeapi.ListPodSandboxResponse{}, nil
}

func (f fakeRuntime) StopPodSandbox(context.Context, *runtimeapi.StopPodSandboxRequest,
) (*runtimeapi.StopPodSandboxResponse, error) {
	if !f.network {
		return nil, errors.New("cni plugin not initialized")
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

func (f fakeRuntime) RemovePodSandbox(context.Context, *runtimeapi.RemovePodSandboxRequest,
) (*runtimeapi.RemovePodSandboxResponse, error) {
	f.pod.Store(false)
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// runtime answers as the containerd of a node's folder.
func (f *fakeSystemd) runtime(node string) (stop func()) {
	if err := os.MkdirAll(filepath.Join(node, "containerd", "root"), 0o755); err != nil {
		f.t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(node, "containerd.sock"))
	if err != nil {
		f.t.Fatal(err)
	}
	server := grpc.NewServer()
	networks, err := filepath.Glob(filepath.Join(node, "cni", "conf", "*.conflist"))
	if err != nil {
		f.t.Fatal(err)
	}
	runtimeapi.RegisterRuntimeServiceServer(server, fakeRuntime{pod: &f.pod, network: len(networks) > 0})
	go func() { _ = server.Serve(listener) }()
	return server.Stop
}

// expect checks that all units run what their files say, and start with the machine.
func (f *fakeSystemd) expect(t *testing.T) {
	t.Helper()
	for _, name := range f.wanted {
		content, err := os.ReadFile(filepath.Join(f.dir, name))
		process := f.running[name]
		if err != nil || process == nil || !f.enabled[name] || f.loaded[name] != string(content) {
			t.Errorf("%s: %v, runs %t, enabled %t, read %t", name, err, process != nil, f.enabled[name],
				f.loaded[name] == string(content))
			continue
		}
		environment, _ := execution(string(content))
		started, err := os.ReadFile(filepath.Join(f.proc, strconv.Itoa(process.pid), "environ"))
		if err != nil || string(started) != strings.Join(environment, "\x00") {
			t.Errorf("%s runs what it was before: %v, %q", name, err, started)
		}
	}
}

// pids are the processes of the units.
func (f *fakeSystemd) pids() string {
	var all []string
	for _, name := range plan.UnitNames() {
		if process := f.running[name]; process != nil {
			all = append(all, fmt.Sprint(name, " ", process.pid))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
