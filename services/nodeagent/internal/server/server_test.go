package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
)

func TestPlainAnswers(t *testing.T) {
	n := newNode(t)
	for path, want := range map[string]string{"/healthz": "ok", "/healthz/ping": "ok", "/healthz/syncloop": "ok",
		"/metrics": "up 1\n", "/metrics/resource": "used 1\n",
		"/metrics/cadvisor": "contained 1\n", "/metrics/probes": "probed 1\n"} {
		if code, body, err := n.get(path); code != 200 || body != want {
			t.Errorf("%s: %d, %q, %v", path, code, body, err)
		}
	}
	n.mu.Lock()
	n.stuck = errors.New("a Pod is stuck")
	n.mu.Unlock()
	for path, want := range map[string]string{"/healthz": "500 a Pod is stuck\n",
		"/healthz/syncloop": "500 a Pod is stuck\n", "/healthz/ping": "200 ok"} {
		if code, body, err := n.get(path); fmt.Sprint(code, " ", body) != want {
			t.Errorf("%s: %d, %q, %v, want %s", path, code, body, err, want)
		}
	}
	_, body, _ := n.get("/pods")
	var list corev1.PodList
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "web" ||
		list.Kind != "PodList" {
		t.Errorf("/pods: %s, %v", body, err)
	}
	for query, want := range map[string]bool{"": true, "?only_cpu_and_memory=false": true,
		"?only_cpu_and_memory=true": false} {
		code, body, _ := n.get("/stats/summary" + query)
		if code != 200 || !strings.Contains(body, `"nodeName":"n1"`) || !strings.Contains(body, `"cpu":`) ||
			strings.Contains(body, `"network":`) != want {
			t.Errorf("/stats/summary%s: %d, %s; want the network: %v", query, code, body, want)
		}
	}
	if code, body, _ := n.get("/stats/summary?only_cpu_and_memory=maybe"); code != http.StatusBadRequest ||
		body != "only_cpu_and_memory: \"maybe\" must be true or false\n" {
		t.Errorf("a flag that is neither: %d, %s", code, body)
	}
	if code, body, _ := n.get("/configz"); code != 200 || !strings.HasPrefix(body, `{"kubeletconfig":{`) ||
		!strings.Contains(body, `"maxPods":7`) {
		t.Errorf("/configz: %d, %s", code, body)
	}
	if code, _, _ := n.get("/none"); code != http.StatusNotFound {
		t.Errorf("/none: %d", code)
	}
}

func entry(stream, text string) string { return "2026-01-31T10:00:00Z " + stream + " F " + text + "\n" }

// POD-106, POD-224, SAF-017
func TestLogs(t *testing.T) {
	n := newNode(t)
	path := filepath.Join(n.logDir, "0.log")
	if err := os.WriteFile(path, []byte(entry("stdout", "one")+entry("stderr", "two")+entry("stdout", "three")),
		0o644); err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	n.state.Containers[0].LogPath, n.state.Containers[0].State = path, observed.Exited
	n.mu.Unlock()
	n.setState(corev1.ContainerStatus{Name: "app", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://c1"}}})
	for query, want := range map[string]string{
		"": "one\ntwo\nthree\n", "?tailLines=1": "three\n", "?stream=Stderr": "two\n", "?limitBytes=5": "one\nt",
		"?follow=true": "one\ntwo\nthree\n", "?timestamps=true&tailLines=1": "2026-01-31T10:00:00.000000000Z three\n",
		"?sinceTime=2026-01-31T10:00:01Z": "", "?sinceSeconds=1": "",
		"?sinceSeconds=9223372036854775807": "one\ntwo\nthree\n",
	} {
		if code, body, err := n.get("/containerLogs/ns/web/app" + query); code != 200 || body != want {
			t.Errorf("%s: %d, %q, %v", query, code, body, err)
		}
	}
	for path, want := range map[string]string{
		"/containerLogs/ns/web/none":                                              `404 container none is not in pod web`,
		"/containerLogs/ns/none/app":                                              `404 pod ns/none is not on this node`,
		"/containerLogs/ns/web/app?previous=true":                                 `400 previous terminated container "app" in pod "web" not found`,
		"/containerLogs/ns/web/app?tailLines=-1":                                  `400 tailLines: "-1" must be a number of at least 0`,
		"/containerLogs/ns/web/app?limitBytes=0":                                  `400 limitBytes: "0" must be a number of at least 1`,
		"/containerLogs/ns/web/app?follow=maybe":                                  `400 follow: "maybe" must be true or false`,
		"/containerLogs/ns/web/app?stream=x":                                      `400 stream: "x" must be All, Stdout or Stderr`,
		"/containerLogs/ns/web/app?sinceTime=x":                                   `400 sinceTime: "x" must be a time as in 2006-01-02T15:04:05Z07:00`,
		"/containerLogs/ns/web/app?sinceTime=2026-01-31T10:00:01Z&sinceSeconds=1": `400 sinceSeconds and sinceTime: at most one may be given`,
	} {
		if code, body, _ := n.get(path); fmt.Sprintf("%d %s", code, body) != want+"\n" {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// POD-106: if a container replaces its log by something else, a client gets an error at once and sees no other
// file.
func TestLogsOfPlainFilesOnly(t *testing.T) {
	for name, lay := range plainfiletest.Traps {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			path := filepath.Join(n.logDir, "0.log")
			lay(t, path)
			n.mu.Lock()
			n.state.Containers[0].LogPath = path
			n.mu.Unlock()
			code, body, err := n.get("/containerLogs/ns/web/app")
			if want := `container "app" in pod "web": opening the log:`; code != 500 ||
				!strings.HasPrefix(body, want) || err != nil {
				t.Errorf("%d, %q, %v", code, body, err)
			}
			if code, body, err := n.get("/containerLogs/ns/web/app?follow=true"); code != 200 || body != "" ||
				err != nil {
				t.Errorf("following: %d, %q, %v", code, body, err)
			}
		})
	}
}

// POD-084, POD-085, POD-106: which instance is meant, in every state of a container, even if the API is behind.
func TestLoggedInstance(t *testing.T) {
	const created, running, exited = observed.Created, observed.Running, observed.Exited
	terminated := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://c1"}}
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	up := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	const nonePrevious = `previous terminated container "app" in pod "web" not found`
	for _, row := range []struct {
		name string
		// has are the states of the instances c0, c1, ..., told the API's state.
		has           []observed.ContainerState
		told          corev1.ContainerState
		log, previous string
	}{
		{"running", []observed.ContainerState{exited, running}, up, "c1", "c0"},
		{"running, and its hook too", []observed.ContainerState{running}, waiting("ContainerCreating"), "c0",
			nonePrevious},
		{"running since a moment ago", []observed.ContainerState{running}, corev1.ContainerState{}, "c0", nonePrevious},
		{"running again since a moment ago", []observed.ContainerState{exited, running}, waiting("CrashLoopBackOff"),
			"c1", "c0"},
		{"nobody knows whether it runs", []observed.ContainerState{observed.Unknown}, up, "c0", nonePrevious},
		{"ended", []observed.ContainerState{exited, exited}, terminated, "c1", "c0"},
		{"ended a moment ago", []observed.ContainerState{exited, exited}, up, "c1", "c1"},
		{"crashed", []observed.ContainerState{exited}, waiting("CrashLoopBackOff"), "c0", "c0"},
		{"made and not begun", []observed.ContainerState{created}, waiting("ContainerCreating"),
			`container "app" in pod "web" is waiting to start: ContainerCreating`, nonePrevious},
		{"made again and not begun", []observed.ContainerState{exited, created}, waiting("CrashLoopBackOff"), "c0",
			"c0"},
		{"creating", nil, waiting("ContainerCreating"),
			`container "app" in pod "web" is waiting to start: ContainerCreating`, nonePrevious},
		{"no image", nil, waiting("ImagePullBackOff"),
			`container "app" in pod "web" is waiting to start: image can't be pulled`, nonePrevious},
		{"no status", nil, corev1.ContainerState{}, `container "app" in pod "web" is waiting to start - no logs yet`,
			nonePrevious},
		{"ended, and the record is gone", nil, terminated,
			"unable to retrieve container logs for c1: the instance is gone", nonePrevious},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "app"}}}}
		pod.Name, pod.Status.InitContainerStatuses = "web", []corev1.ContainerStatus{{Name: "app", State: row.told}}
		has := observed.Pod{Containers: []observed.Container{{ID: "other", Name: "other", State: exited}}}
		for i, state := range row.has {
			has.Containers = append(has.Containers, observed.Container{ID: fmt.Sprint("c", i), Name: "app",
				Attempt: uint32(i), State: state})
		}
		has.Sort()
		for previous, want := range map[bool]string{false: row.log, true: row.previous} {
			instance, err := loggedInstance(pod, "app", previous, has)
			got := fmt.Sprint(err)
			if err == nil {
				got = instance.ID
			}
			if got != want {
				t.Errorf("%s, previous %v: %s, want %s", row.name, previous, got, want)
			}
		}
	}
}

// executors returns executors for both protocols of runtimes. The API server translates the newer WebSocket
// protocol to SPDY.
func executors(t *testing.T, n *node, path string) map[string]remotecommand.Executor {
	t.Helper()
	target, _ := url.Parse("https://" + n.address + path)
	config := n.config(n.client("system:keelson:apiserver"))
	old, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, target)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := remotecommand.NewWebSocketExecutorForProtocols(config, http.MethodGet, target.String(),
		"v4.channel.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]remotecommand.Executor{"SPDY": old, "WebSocket": socket}
}

// execute runs a session without input over each protocol and returns its output.
func execute(t *testing.T, n *node, path string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for name, executor := range executors(t, n, path) {
		var out bytes.Buffer
		if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out}); err != nil {
			t.Errorf("%s over %s: %v", path, name, err)
		}
		got[name] = out.String()
	}
	return got
}

// POD-106, SAF-017, POD-258
func TestExecAndAttach(t *testing.T) {
	n := newNode(t)
	for path, want := range map[string]string{
		"/attach/ns/web/app?output=1":                     "c1:attached:",
		"/exec/ns/web/app?output=1&command=sh&command=-c": "c1:sh:",
	} {
		for name, got := range execute(t, n, path) {
			if got != want {
				t.Errorf("%s over %s: %q", path, name, got)
			}
		}
		var out bytes.Buffer // only SPDY can signal the end of the input
		err := executors(t, n, path+"&input=1")["SPDY"].StreamWithContext(t.Context(),
			remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out})
		if err != nil || out.String() != want+"hello" {
			t.Errorf("%s with input: %q, %v", path, out.String(), err)
		}
	}
	if len(n.asked.Cmd) != 2 || n.asked.Tty || n.asked.Stderr || n.asked.ContainerId != "c1" {
		t.Errorf("the runtime was asked %v", n.asked)
	}
}

// POD-086: a session is possible as soon as a process runs, even if the API says otherwise: while its postStart
// hook runs, the API's status does not show the container as running.
func TestExecAsSoonAsItRuns(t *testing.T) {
	n := newNode(t)
	n.setState(corev1.ContainerStatus{Name: "app",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}})
	for name, got := range execute(t, n, "/exec/ns/web/app?output=1&command=sh") {
		if got != "c1:sh:" {
			t.Errorf("over %s: %q", name, got)
		}
	}
}

// An agent that has just started learns of its Pods before it reports one as missing.
func TestAnAgentThatHasJustStarted(t *testing.T) {
	n := newNode(t)
	n.mu.Lock()
	n.pod.Name = "unknown"
	n.mu.Unlock()
	known := make(chan struct{})
	server := &Server{config: Config{Pods: n, Known: known, Runtime: n}}
	ask := func(ctx context.Context) error {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
		r.SetPathValue("namespace", "ns")
		r.SetPathValue("pod", "web")
		_, err := server.pod(r)
		return err
	}
	early, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if got, ok := errors.AsType[*statusError](ask(early)); !ok || got.code != http.StatusServiceUnavailable {
		t.Errorf("not known yet: %v", got)
	}
	answer := make(chan error)
	go func() { answer <- ask(t.Context()) }()
	n.mu.Lock()
	n.pod = n.pod.DeepCopy()
	n.pod.Name = "web"
	n.mu.Unlock()
	close(known)
	if err := <-answer; err != nil {
		t.Errorf("known by now: %v", err)
	}
}

func TestExecErrors(t *testing.T) {
	n := newNode(t)
	for name, executor := range executors(t, n, "/exec/ns/web/app?output=1&command=fail") {
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "no such program") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for path, want := range map[string]string{
		"/exec/ns/web/none?output=1&command=sh": "404 container none is not in pod web",
		"/exec/ns/web/app?output=1":             "400 command: at least one word is required",
		"/exec/ns/web/app?command=sh":           "400 you must specify at least 1 of stdin, stdout, stderr",
		"/exec/ns/web/app?output=1&command=sh":  "400 connecting to the container: Upgrade request required",
		"/attach/ns/none/app?output=1":          "404 pod ns/none is not on this node",
	} {
		if code, body, _ := n.get(path); fmt.Sprintf("%d %s", code, body) != want+"\n" {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	n.mu.Lock()
	n.state.Containers[0].State = observed.Created
	n.mu.Unlock()
	if code, body, _ := n.get("/exec/ns/web/app?output=1&command=sh"); code != 400 ||
		body != "container app in pod web is not running\n" {
		t.Errorf("not running: %d %s", code, body)
	}
}

// No session begins before the runtime's address is kept from Pods, and none where that fails: a Pod that answers
// there could speak for any container.
func TestSessionsAreTheRuntimesOwn(t *testing.T) {
	n := newNode(t)
	execute(t, n, "/exec/ns/web/app?output=1&command=sh")
	execute(t, n, "/attach/ns/web/app?output=1")
	forward(t, n, "ping")
	n.mu.Lock()
	kept := slices.Clone(n.kept)
	n.unkept = errors.New("the firewall is gone")
	n.mu.Unlock()
	if want := slices.Repeat([]string{n.streams}, 5); !slices.Equal(kept, want) {
		t.Errorf("kept are %v, want %v, once for each session", kept, want)
	}
	for _, path := range []string{"/exec/ns/web/app?output=1&command=sh", "/attach/ns/web/app?output=1",
		"/portForward/ns/web"} {
		if code, body, _ := n.get(path); code != http.StatusInternalServerError ||
			!strings.Contains(body, "the firewall is gone") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// POD-061: port-forward reaches the Pod's own network.
func TestPortForward(t *testing.T) {
	n := newNode(t)
	if got := forward(t, n, "ping"); got != "s1:ping" {
		t.Errorf("got %q", got)
	}
	n.mu.Lock()
	n.state.Sandboxes[0].Ready = false
	n.mu.Unlock()
	if code, body, _ := n.get("/portForward/ns/web"); code != 400 || body != "pod web is not running\n" {
		t.Errorf("%d %s", code, body)
	}
}

// forward sends text to a port of the Pod and returns the answer.
func forward(t *testing.T, n *node, text string) string {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(n.config(n.client("system:keelson:apiserver")))
	if err != nil {
		t.Fatal(err)
	}
	target, _ := url.Parse("https://" + n.address + "/portForward/ns/web")
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:8080"}, stop, ready,
		io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	got := talk(t.Context(), t, fmt.Sprintf("127.0.0.1:%d", ports[0].Local), text)
	close(stop)
	<-ended
	return got
}

func talk(ctx context.Context, t *testing.T, address, text string) string {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(connection)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
