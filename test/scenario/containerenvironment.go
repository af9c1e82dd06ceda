package scenario

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// server is a Pod that answers over HTTP and prints a numbered line every 100 ms.
const server = `apiVersion: v1
kind: Pod
metadata:
  name: server
  labels: {app: server}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: main
    image: ` + Server + `
    args: ["-log-every=100ms"]
    ports: [{containerPort: 8080}]
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  volumes: [{name: scratch, emptyDir: {}}]
`

// ContainerEnvironment looks into a running container as a user does: logs, exec, port-forward and cp.
func ContainerEnvironment(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(server, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/server", "--timeout=60s")
	t.Run("status", func(t *testing.T) { reported(t, w) })
	t.Run("logs", func(t *testing.T) { logs(t, w) })
	t.Run("exec", func(t *testing.T) { execute(t, w) })
	t.Run("port-forward", func(t *testing.T) { portForward(t, w) })
	t.Run("cp", func(t *testing.T) { copyFiles(t, w) })
}

// reported looks at what the runtime alone can tell: the user of the container's first process, and the node's images.
func reported(t *testing.T, w *World) {
	pod := w.Pods("app=server")[0]
	if user := pod.Status.ContainerStatuses[0].User; user == nil || user.Linux == nil || user.Linux.UID != 0 {
		t.Errorf("the container runs as %+v, want root", user)
	}
	w.Await("the node to list the container's image", func() Answer {
		node, err := w.Client.CoreV1().Nodes().Get(w.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		for _, image := range node.Status.Images {
			if slices.Contains(image.Names, Server) && image.SizeBytes > 0 {
				return ""
			}
		}
		return Sawf("it lists %v", node.Status.Images)
	})
}

func logs(t *testing.T, w *World) {
	command := w.kubectl("logs", "server", "--follow", "--since=1s")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := range 20 {
		if !lines.Scan() {
			t.Fatalf("--follow ended after %d lines: %v", i, lines.Err())
		}
	}
	_ = command.Process.Kill()
	_ = command.Wait()
	if got := strings.Count(w.Kubectl("logs", "server", "--tail=3"), "\n"); got != 3 {
		t.Errorf("--tail=3 printed %d lines", got)
	}
	if r := w.TryKubectl("", "logs", "server", "-c", "nobody"); r.Code == 0 ||
		!strings.Contains(r.Stderr, "container nobody is not valid for pod server") {
		t.Errorf("logs of a container that is not there: status %d, %s", r.Code, r.Stderr)
	}
}

func execute(t *testing.T, w *World) {
	if got := w.Kubectl("exec", "server", "--", "echo", "one", "two"); got != "one two\n" {
		t.Errorf("exec echo: %q", got)
	}
	if got := w.KubectlWith("from stdin", "exec", "-i", "server", "--", "cat"); got != "from stdin" {
		t.Errorf("exec -i cat: %q", got)
	}
	if r := w.TryKubectl("", "exec", "server", "--", "sh", "-c", "exit 7"); r.Code != 7 {
		t.Errorf("exit status %d of a command that ends with 7: %s", r.Code, r.Stderr)
	}
	if got := strings.TrimSpace(w.Kubectl("exec", "server", "--", "hostname")); got != "server" {
		t.Errorf("hostname %q", got)
	}
}

var forwarding = regexp.MustCompile(`Forwarding from 127\.0\.0\.1:(\d+)`)

func portForward(t *testing.T, w *World) {
	command := w.kubectl("port-forward", "pod/server", ":8080", "--address=127.0.0.1")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		match := forwarding.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		for range 3 {
			if got := get(t, "http://127.0.0.1:"+match[1]+"/hostname"); strings.TrimSpace(got) != "server" {
				t.Errorf("through the tunnel: %q", got)
			}
		}
		return
	}
	t.Fatalf("port-forward named no port: %v", lines.Err())
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func copyFiles(t *testing.T, w *World) {
	dir := t.TempDir()
	content := bytes.Repeat([]byte("keelson "), 100_000)
	there, back := filepath.Join(dir, "there"), filepath.Join(dir, "back")
	if err := os.WriteFile(there, content, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Kubectl("cp", there, w.Namespace+"/server:/scratch/file")
	w.Kubectl("cp", w.Namespace+"/server:/scratch/file", back)
	got, err := os.ReadFile(back)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes came back of %d: %v", len(got), len(content), err)
	}
	if got := w.Kubectl("exec", "server", "--", "ls", "/scratch"); strings.TrimSpace(got) != "file" {
		t.Errorf("ls /scratch: %s", fmt.Sprintf("%q", got))
	}
}
