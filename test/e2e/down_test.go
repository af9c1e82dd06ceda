package e2e

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/nettest"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestDownAfterShimsWereKilled takes a mesh down whose containers lost their shims while containerd runs on and takes
// them for running.
func TestDownAfterShimsWereKilled(t *testing.T) {
	before := shimSockets(t)
	m := processes.New(t, 1)
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, client, "one", "two")
	m.Kill(t, mesh.NodeAgent)
	if killed := killShims(t, filepath.Join(m.DataDir, "nodes", "node-1", "containerd.sock")); killed != 2 {
		t.Fatalf("killed %d shims, want one of each Pod", killed)
	}
	if len(shimSockets(t)) < len(before)+2 {
		t.Fatal("the shims had no sockets where this test looks for them")
	}
	if out, err := m.Keel(t.Context(), "down"); err != nil {
		t.Fatalf("keel down: %v\n%s", err, out)
	}
	for what, pattern := range map[string]string{"runc's state": "containerd/runc/*", "addresses": "cni/addresses/*"} {
		left, err := filepath.Glob(filepath.Join(m.DataDir, "nodes", "*", filepath.FromSlash(pattern)))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", what, left, err)
		}
	}
	for _, socket := range shimSockets(t) {
		if !slices.Contains(before, socket) {
			t.Errorf("the socket %s is left", socket)
		}
	}
}

// Of the network of two nodes, their Pods and Services nothing is left in the kernel, nor of the nodes' names and
// mounts.
func TestDownLeavesNoNetwork(t *testing.T) {
	before := nettest.Standing(t)
	m := processes.New(t, 2)
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, client, "one", "two")
	awaitService(t, client, "one")
	added := strings.Join(without(nettest.Standing(t), before), "\n")
	for _, what := range []string{"-services-node-1", "link keel", "Table: 7575"} {
		if !strings.Contains(added, what) {
			t.Fatalf("this test does not see %q of a mesh that is up:\n%s", what, added)
		}
	}
	t.Run("Hosts", func(t *testing.T) { nodesAreHosts(t, m) })
	takeDown(t, m, before)
	if left, err := mountsBelow(m.DataDir); err != nil || len(left) > 0 {
		t.Errorf("mounts of %s: %v, %v", m.DataDir, left, err)
	}
}

// takeDown ends the mesh, of which nothing may stay of what the kernel holds beyond before: it ends networks and their
// links in a time of its own.
func takeDown(t *testing.T, m *processes.Mesh, before []string) {
	t.Helper()
	if out, err := m.Keel(t.Context(), "down"); err != nil {
		t.Fatalf("keel down: %v\n%s", err, out)
	}
	var left []string
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			left = without(nettest.Standing(t), before)
			return len(left) == 0, nil
		}); err != nil {
		t.Errorf("left in the kernel:\n%s", strings.Join(left, "\n"))
	}
}

// without returns what of all is not among those.
func without[T comparable](all, those []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return slices.Contains(those, one) })
}

// awaitRunning makes Pods, once their namespace takes them, and waits until they run.
func awaitRunning(t *testing.T, client kubernetes.Interface, names ...string) {
	t.Helper()
	for _, name := range names {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				Containers:                    []corev1.Container{{Name: "c", Image: scenario.HelloV1}},
			},
		}
		var last error
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				got, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					_, last = client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
					return false, nil
				}
				return got.Status.Phase == corev1.PodRunning, nil
			})
		if err != nil {
			t.Fatalf("Pod %s does not run: %v, %v", name, err, last)
		}
	}
}

// awaitService puts a Service with a node port before a Pod and waits until the machine has an answer of it.
func awaitService(t *testing.T, client kubernetes.Interface, pod string) {
	t.Helper()
	service, err := client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: pod},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": pod},
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			var answer *http.Response
			if answer, last = http.Get("http://" + service.Spec.ClusterIP + "/"); last == nil {
				_ = answer.Body.Close()
			}
			return last == nil, nil
		}); err != nil {
		t.Fatalf("the Service of Pod %s does not answer: %v, %v", pod, err, last)
	}
}

func shimSockets(t testing.TB) []string {
	t.Helper()
	sockets, err := filepath.Glob("/run/containerd/s/*")
	if err != nil {
		t.Fatal(err)
	}
	return sockets
}

// killShims ends the shims of one containerd, which are known by its socket, and returns how many there were.
func killShims(t testing.TB, socket string) int {
	t.Helper()
	pids, err := shimsOf(socket)
	must(t, err)
	killed := 0
	for _, pid := range pids {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// shimsOf returns the process IDs of the shims of one containerd.
func shimsOf(socket string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		words := strings.Split(string(content), "\x00")
		if filepath.Base(words[0]) != "containerd-shim-runc-v2" || !slices.Contains(words, socket) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// TestDownWithoutANetworkConfiguration takes a mesh down whose containerd knows no network any more, and without it
// lets no Pod go; the shims are killed as well. A keel down that is killed while another network stands in for it is
// finished by the next one.
func TestDownWithoutANetworkConfiguration(t *testing.T) {
	for _, name := range []string{"at once", "killed in the middle"} {
		t.Run(name, func(t *testing.T) {
			before := nettest.Standing(t)
			m := processes.New(t, 1)
			client, err := kubernetes.NewForConfig(m.Admin())
			must(t, err)
			awaitRunning(t, client, "one", "two")
			m.Kill(t, mesh.NodeAgent)
			results := "/var/lib/cni/results/keel" + meshID(m) + "-*" // the file of each Pod, by its network's name
			if kept, err := filepath.Glob(results); err != nil || len(kept) != 2 {
				t.Fatalf("the plugins' library keeps %v of 2 Pods, %v", kept, err)
			}
			groups, node := m.CgroupRoot(), filepath.Join(m.DataDir, "nodes", "node-1")
			killShims(t, filepath.Join(node, "containerd.sock"))
			forgetNetwork(t, m, node)
			if name != "at once" {
				killDown(t, m, filepath.Join(node, "cni", "conf", "99-keelson-down.conflist"))
			}
			takeDown(t, m, before)
			if left, err := mountsBelow(m.DataDir); err != nil || len(left) > 0 {
				t.Errorf("mounts of %s: %v, %v", m.DataDir, left, err)
			}
			for _, pattern := range []string{"/sys/fs/cgroup" + groups, "/sys/fs/cgroup/*" + groups,
				node + "/containerd/state/io.containerd.grpc.v1.cri/netns/*", node + "/cni/conf/*",
				node + "/cni/addresses/*", node + "/containerd/runc/*", results} {
				found, err := filepath.Glob(pattern)
				must(t, err)
				for _, path := range found {
					t.Errorf("%s is left", path)
				}
			}
		})
	}
}

// forgetNetwork empties the folder of network configurations and waits until containerd has seen it.
func forgetNetwork(t *testing.T, m *processes.Mesh, node string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(node, "cni", "conf", "*"))
	must(t, err)
	if len(files) == 0 {
		t.Fatal("the node had no network configuration")
	}
	for _, file := range files {
		must(t, os.Remove(file))
	}
	runtime := m.Runtime(t)
	must(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			status, err := runtime.Status(ctx, &criv1.StatusRequest{})
			if err != nil {
				return false, err
			}
			for _, condition := range status.GetStatus().GetConditions() {
				if condition.GetType() == criv1.NetworkReady {
					return !condition.GetStatus(), nil
				}
			}
			return false, nil
		}))
}

// killDown kills a keel down once a file is there, which takes the node's containerd as long as its start.
func killDown(t *testing.T, m *processes.Mesh, file string) {
	t.Helper()
	down := exec.CommandContext(t.Context(), filepath.Join(scenario.BinDir(), "keel"), "--data-dir", m.DataDir, "down")
	must(t, down.Start())
	ended := make(chan error, 1)
	go func() { ended <- down.Wait() }()
	for {
		if _, err := os.Stat(file); err == nil {
			must(t, down.Process.Kill())
			t.Logf("keel down: %v", <-ended)
			return
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("keel down ended without %s: %v", file, err)
			}
			t.Log("keel down has ended before it could be killed")
			return
		case <-time.After(time.Millisecond):
		}
	}
}
