package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/cli/internal/systemd"
	"keelson.dev/cli/internal/unit"
	"keelson.dev/kit/subprocess"
)

// ctrScript never ends, and what it has started holds its output open until the script's file is gone.
const ctrScript = "#!/bin/sh\n(while [ -e \"$0\" ]; do sleep 0.1; done) &\nwait\n"

// stuckMachine returns a mesh on a machine where nothing ever answers: the API, a runtime, ctr and systemctl. One of
// its processes runs and is deaf to SIGTERM.
func stuckMachine(t *testing.T) (*Mesh, Options) {
	t.Helper()
	dir, err := os.MkdirTemp("", "keelstuck") // short enough for a socket's path
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &Mesh{Layout: plan.Layout{Dir: filepath.Join(dir, "d")}, Out: &bytes.Buffer{},
		Units: &systemd.Units{Folder: unit.Folder(dir), Proc: unit.Proc(dir), Call: func(ctx context.Context,
			_ ...string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}},
		State: &state.State{Version: 1, Nodes: []state.Node{{Name: "node-1"}}, DNS: plan.CoreDNS}}
	node := m.Layout.Node("node-1")
	must(t, errors.Join(os.MkdirAll(node.Dir, 0o755), os.MkdirAll(filepath.Dir(m.Layout.PKI("")), 0o755)))
	// The kernel accepts connections, and no program reads from them.
	api := silent(t, "tcp", "127.0.0.1:0")
	silent(t, "unix", node.Socket())
	kubeconfig := m.Layout.Kubeconfig(plan.AdminCertificate)
	must(t, errors.Join(os.MkdirAll(filepath.Dir(kubeconfig), 0o755), os.WriteFile(kubeconfig, fmt.Appendf(nil,
		`{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": "http://%s"}}]}`, api), 0o600)))
	must(t, errors.Join(os.WriteFile(filepath.Join(dir, "ctr"), []byte(ctrScript), 0o755),
		os.WriteFile(filepath.Join(dir, "pause.tar"), nil, 0o644)))
	deaf, err := subprocess.Start(subprocess.Command{Name: "deaf", Path: "/bin/sh",
		Args: []string{"-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"}, Log: m.Layout.Log("deaf")})
	must(t, err)
	t.Cleanup(func() { _ = deaf.Signal(syscall.SIGKILL) })
	must(t, subprocess.WaitReady(t.Context(), deaf, func(context.Context) error {
		said, err := os.ReadFile(deaf.Log)
		if err == nil && len(said) == 0 {
			err = errors.New("it has not begun")
		}
		return err
	}))
	m.State.Put(deaf)
	must(t, m.State.Save(m.Layout))
	return m, Options{Programs: dir, Images: dir}
}

func silent(t *testing.T, network, address string) net.Addr {
	t.Helper()
	listener, err := net.Listen(network, address)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runningRuntimes do nothing to a runtime, which does not answer.
type runningRuntimes struct{}

func (runningRuntimes) ensure(context.Context, string) error  { return nil }
func (runningRuntimes) restart(context.Context, string) error { return nil }

// A step returns once its context has ended, and says what it waited for.
func TestEveryStepEndsWithItsContext(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // of the machine's lock
	unlock, err := state.LockMachine(t.Context())
	must(t, err)
	defer unlock()
	m, options := stuckMachine(t)
	unit := plan.Unit{Name: "keelson-podgc.service", Process: plan.Process{Name: "podgc"}}
	containerd := plan.Process{Name: plan.ContainerdProcess("node-1")}
	running, _ := m.State.Find("deaf")
	for name, row := range map[string]struct {
		step func(ctx context.Context) error
		want string
	}{
		"up: lock": {func(ctx context.Context) error {
			_, err := m.prepareAndStart(ctx, Options{})
			return err
		}, "waiting for another keel, which is choosing ports and holds "},
		"up: start": {func(ctx context.Context) error {
			return subprocess.WaitReady(ctx, running, m.readiness(nil, containerd))
		}, "deaf is not ready: asking containerd for its status"},
		"init: lock": {func(ctx context.Context) error {
			_, err := m.prepareUnits(ctx, options, m.settle, m.prepare)
			return err
		}, "waiting for another keel, which is choosing ports and holds "},
		"init: look": {func(ctx context.Context) error {
			_, err := m.activeProcesses(ctx, "node-1")
			return err
		}, "context deadline exceeded"},
		"init: units": {func(ctx context.Context) error {
			return m.convergeUnits(ctx, []plan.Unit{unit})
		}, "context deadline exceeded"},
		"init: start": {func(ctx context.Context) error {
			return m.runUnits(ctx, []plan.Unit{unit})
		}, "context deadline exceeded"},
		"init: node":   {m.awaitNode, "the node node-1 is not ready in time: "},
		"import":       {func(ctx context.Context) error { return m.importImages(ctx, options) }, "importing images: "},
		"DNS":          {m.InstallDNS, "applying ServiceAccount coredns of cluster DNS"},
		"running Pods": {func(ctx context.Context) error { _, err := m.RunningPods(ctx); return err }, "of node-1: "},
		"remove Pods": {func(ctx context.Context) error {
			return m.removePods(ctx, []string{"node-1"}, runningRuntimes{})
		}, "listing the Pods of node-1: "},
		"reset: units": {func(ctx context.Context) error {
			return m.stopUnits(ctx, []string{plan.UnitName(plan.PodGC)})
		}, "stopping " + plan.UnitName(plan.PodGC) + ": "},
		"a part that is late": {func(ctx context.Context) error {
			<-ctx.Done()
			return m.Part(ctx, "cluster DNS", func(context.Context) error { panic("it was begun") })
		}, "cluster DNS: not begun: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := soon(t, row.step); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// Pods that are not removed take two thirds of the time, so that the rest can still be stopped.
func TestTimeForPods(t *testing.T) {
	m, _ := stuckMachine(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		start := time.Now()
		err := m.removePods(ctx, []string{"node-1"}, stuckRuntimes{})
		const want = "removing Pods: not done after two thirds of the time that --timeout left: " +
			"context deadline exceeded"
		if took := time.Since(start); took != 2*time.Minute || err == nil || err.Error() != want {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// stuckRuntimes never start.
type stuckRuntimes struct{ runningRuntimes }

func (stuckRuntimes) ensure(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// soon makes a step run out of time. The length of the deadline does not matter: the step waits for something that
// never comes.
func soon(t *testing.T, step func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- step(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it still waits a minute after its time was over")
		return nil
	}
}

// Without any time left, keel down still stops the running processes.
func TestDownWithoutTimeKills(t *testing.T) {
	m, _ := stuckMachine(t)
	m.State.Nodes = nil
	must(t, m.State.Save(m.Layout))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, Down(ctx, m))
	if len(m.State.Processes) > 0 {
		t.Errorf("left: %v", m.State.Processes)
	}
}

// Opening a pipe in the images folder would block for ever.
func TestAPipeIsNoImage(t *testing.T) {
	m, options := stuckMachine(t)
	pipe := filepath.Join(options.Images, "a.tar")
	must(t, syscall.Mkfifo(pipe, 0o644))
	err := m.importImages(t.Context(), options)
	if want := "reading the image " + pipe + ": it is no regular file"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
