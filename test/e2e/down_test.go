package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
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

// Of the network of two nodes, their Pods and Services nothing is left in the kernel.
func TestDownLeavesNoNetwork(t *testing.T) {
	before := nettest.Standing(t)
	m := processes.New(t, 2)
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, client, "one", "two")
	added := strings.Join(without(nettest.Standing(t), before), "\n")
	for _, what := range []string{"-services-node-1", "link keel", "route "} {
		if !strings.Contains(added, what) {
			t.Fatalf("this test does not see %q of a mesh that is up:\n%s", what, added)
		}
	}
	if out, err := m.Keel(t.Context(), "down"); err != nil {
		t.Fatalf("keel down: %v\n%s", err, out)
	}
	if left := without(nettest.Standing(t), before); len(left) > 0 {
		t.Errorf("left in the kernel:\n%s", strings.Join(left, "\n"))
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(table), m.DataDir+"/") {
		t.Errorf("something is mounted below %s: %v\n%s", m.DataDir, err, table)
	}
}

// without returns what of all is not among those.
func without(all, those []string) []string {
	return slices.DeleteFunc(all, func(one string) bool { return slices.Contains(those, one) })
}

// awaitRunning makes Pods, once their namespace takes them, and waits until they run.
func awaitRunning(t *testing.T, client kubernetes.Interface, names ...string) {
	t.Helper()
	for _, name := range names {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers:                    []corev1.Container{{Name: "c", Image: scenario.HelloV1}},
		}}
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

func shimSockets(t *testing.T) []string {
	t.Helper()
	sockets, err := filepath.Glob("/run/containerd/s/*")
	if err != nil {
		t.Fatal(err)
	}
	return sockets
}

// killShims ends the shims of one containerd, which are known by its socket, and returns how many there were.
func killShims(t *testing.T, socket string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
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
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
