package servertest_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/app"
	"keelson.dev/services/apiserver/internal/servertest"
)

const (
	// childEnv makes this test binary an apiserver on the named directory, to be killed.
	childEnv = "KEELSON_SERVERTEST_CHILD"
	// daemonEnv makes it the whole daemon, with its command line: a daemon takes over the logs of its process.
	daemonEnv = "KEELSON_SERVERTEST_DAEMON"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		serve(dir)
		return
	}
	if dir := os.Getenv(daemonEnv); dir != "" {
		config := servertest.NewConfig(&testing.T{}, dir)
		os.Exit(daemon.Execute(context.Background(), app.DaemonWith(config),
			[]string{"--data-dir=" + config.DataDir, "--log-level=error", "--status-address="}, os.Stderr))
	}
	os.Exit(m.Run())
}

func serve(dir string) {
	config := servertest.NewConfig(&testing.T{}, dir)
	handle, err := inproc.Start(context.Background(), config, zap.NewNop())
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	// Armed once the server has made its own objects, so that the test's write is the one that meets it.
	if err := failpoint.ArmAll(os.Getenv(failpoint.EnvVar)); err != nil {
		panic(err)
	}
	fmt.Println(handle.Address())
	<-handle.Done()
}

// child is an apiserver in a process of its own.
type child struct {
	command *exec.Cmd
	address string
	client  kubernetes.Interface
}

func startChild(t *testing.T, dir string, failpoints string) *child {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childEnv+"="+dir, failpoint.EnvVar+"="+failpoints)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("starting a child: %v", err)
	}
	c := &child{command: command}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "error:") {
		t.Fatalf("the child did not start: %s %v", line, err)
	}
	c.address = strings.TrimSpace(line)
	c.client = kubernetes.NewForConfigOrDie(servertest.ConfigAs(c.address, servertest.Admin))
	return c
}

func (c *child) kill() {
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
}

// TestAcknowledgedIsOnDisk kills a server in the middle of writes: what it
// answered for is there when the next one starts on the same directory.
func TestAcknowledgedIsOnDisk(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, dir, "")
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	enough := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("c-%d-%d", w, i)
				if _, err := c.client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap(name, nil),
					metav1.CreateOptions{}); err != nil {
					return
				}
				mu.Lock()
				acknowledged[name] = true
				if len(acknowledged) == 200 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	c.kill()
	writers.Wait()

	list, err := startChild(t, dir, "").client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("listing after the restart: %v", err)
	}
	for _, found := range list.Items {
		delete(acknowledged, found.Name)
	}
	if len(acknowledged) > 0 {
		t.Errorf("%d acknowledged objects are lost: %v", len(acknowledged), acknowledged)
	}
}

// TestCrashAtEachWrite lets the server die before and after a write. The write
// was not acknowledged, so it may count or not, but the next server is whole.
func TestCrashAtEachWrite(t *testing.T) {
	for point, stored := range map[string]bool{"apiserver/store.create.before": false,
		"apiserver/store.create.after": true} {
		t.Run(filepath.Base(point), func(t *testing.T) {
			dir := t.TempDir()
			startChild(t, dir, "").kill() // the system's objects are made here
			c := startChild(t, dir, point+"=crash")
			if _, err := c.client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a", nil),
				metav1.CreateOptions{}); err == nil {
				t.Fatal("the write was acknowledged by a server that died in it")
			}
			_, err := startChild(t, dir, "").client.CoreV1().ConfigMaps("default").Get(t.Context(), "a",
				metav1.GetOptions{})
			if stored && err != nil || !stored && !apierrors.IsNotFound(err) {
				t.Errorf("after the restart: %v, want stored %v", err, stored)
			}
		})
	}
}

// testFailedWrites: a write that fails before the store changes nothing.
func testFailedWrites(t *testing.T, s *servertest.Server) {
	client := s.Client.CoreV1().ConfigMaps(s.Namespace(t, "failed"))
	create(t, client, configMap("a", nil))
	for _, verb := range []string{"create", "update", "delete"} {
		if err := failpoint.Arm("apiserver/store."+verb+".before", "error(no disk)"); err != nil {
			t.Fatal(err)
		}
		defer failpoint.Disarm("apiserver/store." + verb + ".before")
	}
	if _, err := client.Create(t.Context(), configMap("b", nil),
		metav1.CreateOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("create: %v, want an internal error", err)
	}
	if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("delete: %v, want an internal error", err)
	}
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil || names(list) != "a" {
		t.Errorf("afterwards: %q, %v, want only a", names(list), err)
	}
}
