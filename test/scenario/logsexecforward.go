package scenario

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"keelson.dev/test/mesh"
)

// LogsExecAndPortForward reaches into the Pods of every kind by the name of their owner: logs, exec and port-forward
// find one. Pods that kubectl run makes for one command end with its status.
func LogsExecAndPortForward(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(everyWorkload+everyOther, "apply", "-f", "-")
	w.Kubectl("wait", "pods", "-l", "of", "--for=condition=Ready", "--timeout=90s")
	for name := range strings.FieldsSeq(
		"deployment replicaset replicationcontroller statefulset daemonset job service") {
		w.awaitOutput([]string{"serving http on "}, "logs", name+"/every", "--pod-running-timeout=60s")
		w.says("there", "exec", name+"/every", "--", "echo", "there")
	}
	pod := "every-0"
	w.says("[pod/every-0/main] serving http on [::]:8080", "logs", "-l", "of=sts", "--prefix")
	w.says("servi", "logs", pod, "--limit-bytes=5")
	w.says("", "logs", pod, "--since-time=2100-01-01T00:00:00Z")
	stamped := strings.Fields(w.Kubectl("logs", pod, "--timestamps", "--tail=1"))
	if _, err := time.Parse(time.RFC3339Nano, stamped[0]); err != nil || stamped[1] != "serving" {
		t.Errorf("--timestamps printed %v: %v", stamped, err)
	}
	for words, want := range map[string]string{
		"logs every-0 --previous":           `previous terminated container "main" in pod "every-0" not found`,
		"logs nobody":                       `pods "nobody" not found`,
		"exec every-0 -c side -- true":      "container side is not valid for pod every-0",
		"exec every-0 -- nothing":           `exec: "nothing": executable file not found in $PATH`,
		"exec configmap/every -- true":      "cannot attach to *v1.ConfigMap",
		"port-forward service/every 1:9999": "Service every does not have a service port 9999",
	} {
		w.refuses("", []string{want}, strings.Fields(words)...)
	}
	for _, target := range [][]string{{"service/every", ":80"}, {"deployment/every", ":8080"}, {pod, ":8080"}} {
		host := strings.TrimSpace(requestThroughForward(w, target...))
		if !strings.HasPrefix(host, "every-") {
			t.Errorf("port-forward %v leads to %q", target, host)
		}
	}
	expectRunExitCode(w)
}

// requestThroughForward asks who is behind a forwarded port.
func requestThroughForward(w *World, target ...string) string {
	w.Helper()
	command := w.kubectl(append([]string{"port-forward", "--address=127.0.0.1"}, target...)...)
	out, err := command.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := command.Start(); err != nil {
		w.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		if match := forwarding.FindStringSubmatch(scanner.Text()); match != nil {
			_, body := request(w, "GET", "http://127.0.0.1:"+match[1]+"/hostname", "", "")
			return body
		}
	}
	w.Errorf("port-forward %v named no port", target)
	return ""
}

// expectRunExitCode makes Pods for one command each, which are gone afterwards.
func expectRunExitCode(w *World) {
	w.Helper()
	once := func(stdin, name string, command ...string) Result {
		return w.TryKubectl(stdin, append([]string{"run", name, "--image=" + Server, "--restart=Never", "--rm", "-i",
			"--command", "--"}, command...)...)
	}
	if r := once("to and fro", "fed", "sh", "-c", "cat; exit 0"); r.Code != 0 || !strings.Contains(r.Stdout,
		"to and fro") || !strings.Contains(r.Stdout+r.Stderr, `pod "fed" deleted from `+w.Namespace) {
		w.Errorf("run of cat: status %d, %q %q", r.Code, r.Stdout, r.Stderr)
	}
	if r := once("", "failing", "sh", "-c", "exit 7"); r.Code != 7 {
		w.Errorf("run of a command that ends with 7: status %d, %q %q", r.Code, r.Stdout, r.Stderr)
	}
	if r := w.TryKubectl("", "get", "pod", "fed", "failing"); strings.Count(r.Stderr, "NotFound") != 2 {
		w.Errorf("Pods of one command are left: %s%s", r.Stdout, r.Stderr)
	}
	w.says("pod/kept created", "run", "kept", "--image="+Server, "--labels=of=kept", "--env=SHAPE=round", "--port=8080",
		"--expose=false", "--restart=Never", "--command", "--", "sh", "-c", "echo $SHAPE")
	w.Kubectl("wait", "pod/kept", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s")
	w.says("round", "logs", "kept")
	w.says("Never kept 8080", "get", "pod", "kept", "-o",
		"jsonpath={.spec.restartPolicy} {.metadata.labels.of} {.spec.containers[0].ports[0].containerPort}")
}
