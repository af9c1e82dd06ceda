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
	"strings"
	"testing"

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

// Inside looks into a running container as a user does: logs, exec, port-forward and cp.
func Inside(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(server, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/server", "--timeout=60s")
	t.Run("logs", func(t *testing.T) { logs(t, w) })
	t.Run("exec", func(t *testing.T) { execute(t, w) })
	t.Run("port-forward", func(t *testing.T) { portForward(t, w) })
	t.Run("cp", func(t *testing.T) { copyFiles(t, w) })
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
	if r := w.TryKubectl("", "logs", "server", "-c", "nobody"); r.Code == 0 || !strings.Contains(r.Stderr, "container nobody is not valid for pod server") {
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
