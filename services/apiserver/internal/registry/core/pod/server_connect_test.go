package pod_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // What client-go dials with.
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// POD-224: each container's log, with all options.
func testLog(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode, func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init-mydb", Image: "busybox:1.28"}}
	}))
	for name, row := range map[string]struct {
		options corev1.PodLogOptions
		want    string
	}{
		"the only container": {corev1.PodLogOptions{}, "/nginx"},
		"an init container":  {corev1.PodLogOptions{Container: "init-mydb"}, "/init-mydb"},
		"with options": {corev1.PodLogOptions{TailLines: ptr.To[int64](0), Previous: true, Timestamps: true},
			"/nginx?previous=true&tailLines=0&timestamps=true"},
		"insecure": {corev1.PodLogOptions{InsecureSkipTLSVerifyBackend: true}, "/nginx"},
	} {
		raw, err := pods.GetLogs("nginx", &row.options).DoRaw(t.Context())
		must(t, err)
		if want := "/containerLogs/" + p.Namespace + "/nginx" + row.want + "\n"; string(raw) != want {
			t.Errorf("%s: got %q, want %q", name, raw, want)
		}
	}
	create(t, pods, nginx(func(p *corev1.Pod) { p.Name = "nowhere" }))
	raw, err := pods.GetLogs("nowhere", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || len(raw) != 0 {
		t.Errorf("the log of a Pod without a node: %q, %v", raw, err)
	}
}

func testFollowLog(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	create(t, pods, nginx(onNode))
	stream, err := pods.GetLogs("nginx", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	must(t, err)
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	for i := range 3 {
		if !lines.Scan() {
			t.Fatalf("the stream ended: %v", lines.Err())
		}
		if i > 0 && lines.Text() != fmt.Sprintf("line %d", i-1) {
			t.Errorf("got %q", lines.Text())
		}
		if i < 2 {
			c.agent.Append(fmt.Sprintf("line %d", i))
		}
	}
}

func testLogRefused(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	create(t, pods, nginx(onNode, func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "gone", Image: "b"})
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i"}}
	}))
	for _, row := range []struct {
		options corev1.PodLogOptions
		is      func(error) bool
		want    string
	}{
		{corev1.PodLogOptions{}, apierrors.IsBadRequest, "a container name must be specified for pod nginx, choose " +
			"one of: [nginx gone] or one of the init containers: [init]"},
		{corev1.PodLogOptions{Container: "nobody"}, apierrors.IsBadRequest,
			"container nobody is not valid for pod nginx"},
		{corev1.PodLogOptions{Container: "nginx", TailLines: ptr.To[int64](-1)}, apierrors.IsInvalid,
			"tailLines: Invalid value: -1: must be greater than or equal to 0"},
		{corev1.PodLogOptions{Container: "gone"}, apierrors.IsBadRequest, "container gone is waiting to start"},
	} {
		_, err := pods.GetLogs("nginx", &row.options).Stream(t.Context())
		wantError(t, err, row.is, row.want)
	}
	_, err := pods.GetLogs("nobody", &corev1.PodLogOptions{}).Stream(t.Context())
	wantError(t, err, apierrors.IsNotFound, `pods "nobody" not found`)
	create(t, pods, nginx(func(p *corev1.Pod) { p.Name, p.Spec.NodeName = "silent", deadNode }))
	_, err = pods.GetLogs("silent", &corev1.PodLogOptions{}).Stream(t.Context())
	wantError(t, err, apierrors.IsServiceUnavailable,
		"the agent of node node-dead does not answer: dial tcp 127.0.0.1:1: connect: connection refused")
	create(t, pods, nginx(func(p *corev1.Pod) { p.Name, p.Spec.NodeName = "lost", "node-gone" }))
	_, err = pods.GetLogs("lost", &corev1.PodLogOptions{}).Stream(t.Context())
	wantError(t, err, apierrors.IsNotFound, `nodes "node-gone" not found`)
}

// executors are the two ways in which clients run a command: WebSocket, as kubectl does now, and SPDY, as it did.
func executors(t *testing.T, c *cluster, namespace, subresource string, options any) map[string]remotecommand.Executor {
	t.Helper()
	at := c.Client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("nginx").SubResource(
		subresource)
	switch o := options.(type) {
	case *corev1.PodExecOptions:
		at = at.VersionedParams(o, scheme.ParameterCodec)
	case *corev1.PodAttachOptions:
		at = at.VersionedParams(o, scheme.ParameterCodec)
	}
	config := c.ConfigAs(servertest.Admin)
	websocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, at.URL().String())
	must(t, err)
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, at.URL())
	must(t, err)
	return map[string]remotecommand.Executor{"WebSocket": websocket, "SPDY": spdy}
}

func testExec(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode))
	for name, executor := range executors(t, c, p.Namespace, "exec",
		&corev1.PodExecOptions{Command: []string{"cat", "-"}, Stdin: true, Stdout: true, Stderr: true}) {
		var stdout, stderr bytes.Buffer
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("hello\n"),
			Stdout: &stdout, Stderr: &stderr})
		if want := "/exec/" + p.Namespace + "/nginx/nginx cat -\nhello\n"; err != nil || stdout.String() != want ||
			stderr.String() != "errors\n" {
			t.Errorf("%s: got %q, %q and %v, want %q", name, stdout.String(), stderr.String(), err, want)
		}
	}
	for name, executor := range executors(t, c, p.Namespace, "exec", &corev1.PodExecOptions{Command: []string{"exit"},
		Stdout: true}) {
		var code exec.CodeExitError
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		if !errors.As(err, &code) || code.Code != 3 {
			t.Errorf("%s: got %v, want exit code 3", name, err)
		}
	}
}

func testAttach(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode))
	for name, executor := range executors(t, c, p.Namespace, "attach", &corev1.PodAttachOptions{Container: "nginx",
		Stdout: true}) {
		var stdout bytes.Buffer
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &stdout})
		if want := "/attach/" + p.Namespace + "/nginx/nginx \n"; err != nil || stdout.String() != want {
			t.Errorf("%s: got %q and %v, want %q", name, stdout.String(), err, want)
		}
	}
}

// window is a terminal of one size.
type window struct {
	sizes chan remotecommand.TerminalSize
}

func (w window) Next() *remotecommand.TerminalSize {
	if size, ok := <-w.sizes; ok {
		return &size
	}
	return nil
}

func testTerminal(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode))
	for name, executor := range executors(t, c, p.Namespace, "exec", &corev1.PodExecOptions{Command: []string{"sh"},
		Stdin: true, Stdout: true, TTY: true}) {
		terminal := window{make(chan remotecommand.TerminalSize, 1)}
		terminal.sizes <- remotecommand.TerminalSize{Width: 80, Height: 24}
		close(terminal.sizes)
		var stdout bytes.Buffer
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader(""),
			Stdout: &stdout, Tty: true, TerminalSizeQueue: terminal})
		if err != nil || !strings.HasSuffix(stdout.String(), "sh\n80x24\n") {
			t.Errorf("%s: got %q and %v", name, stdout.String(), err)
		}
	}
}

func testExecRefused(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx())
	for _, row := range []struct {
		options corev1.PodExecOptions
		want    string
	}{
		{corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}, "pod nginx does not have a host assigned"},
		{corev1.PodExecOptions{Command: []string{"true"}, Stdout: true, Container: "nobody"},
			"container nobody is not valid for pod nginx"},
		{corev1.PodExecOptions{Stdout: true}, "you must specify at least 1 command"},
	} {
		for name, executor := range executors(t, c, p.Namespace, "exec", &row.options) {
			err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: got %v, want %q", name, err, row.want)
			}
		}
	}
	err := c.Client.CoreV1().RESTClient().Post().Namespace(p.Namespace).Resource("pods").Name("nginx").SubResource(
		"exec").
		Param("command", "true").Param("stdout", "maybe?").Do(t.Context()).Error()
	if err == nil {
		t.Error("a request without an upgrade was accepted")
	}
}

func testPortForward(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode))
	at := c.Client.CoreV1().RESTClient().Post().Namespace(p.Namespace).Resource("pods").Name("nginx").SubResource(
		"portforward").URL()
	for name, dialer := range dialers(t, c, at) {
		if got, want := forward(t, dialer), "/portForward/"+p.Namespace+"/nginx 80\nhello\n"; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func dialers(t *testing.T, c *cluster, at *url.URL) map[string]httpstream.Dialer {
	t.Helper()
	config := c.ConfigAs(servertest.Admin)
	tunnel, err := portforward.NewSPDYOverWebsocketDialer(at, config)
	must(t, err)
	transport, upgrader, err := spdy.RoundTripperFor(config)
	must(t, err)
	return map[string]httpstream.Dialer{"WebSocket": tunnel, "SPDY": spdy.NewDialer(upgrader,
		&http.Client{Transport: transport}, http.MethodPost, at)}
}

// forward sends a line to port 80 and returns what comes back.
func forward(t *testing.T, dialer httpstream.Dialer) string {
	t.Helper()
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	must(t, err)
	defer func() { _ = connection.Close() }()
	header := http.Header{}
	header.Set(corev1.PortHeader, "80")
	header.Set(corev1.PortForwardRequestIDHeader, "0")
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	errorStream, err := connection.CreateStream(header)
	must(t, err)
	errorStream.Close()
	header = header.Clone()
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(header)
	must(t, err)
	_, err = io.WriteString(data, "hello\n")
	must(t, err)
	must(t, data.Close())
	answer, err := io.ReadAll(data)
	must(t, err)
	return string(answer)
}
