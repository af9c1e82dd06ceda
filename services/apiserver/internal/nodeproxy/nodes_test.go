package nodeproxy_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/nodeproxy/agenttest"
)

func TestAddress(t *testing.T) {
	node := func(port int32, pairs ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = port
		for i := 0; i < len(pairs); i += 2 {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(pairs[i]),
				Address: pairs[i+1]})
		}
		return n
	}
	rows := []struct {
		name      string
		node      *corev1.Node
		want, err string
	}{
		{"internal address first", node(10250, "Hostname", "h", "ExternalIP", "2.2.2.2", "InternalIP", "1.1.1.1"),
			"1.1.1.1:10250", ""},
		{"then the name", node(10250, "ExternalIP", "2.2.2.2", "Hostname", "h"), "h:10250", ""},
		{"then what is left", node(10250, "ExternalDNS", "e", "ExternalIP", "2.2.2.2"), "2.2.2.2:10250", ""},
		{"IPv6", node(1, "InternalIP", "fd00::1"), "[fd00::1]:1", ""},
		{"no port", node(0, "InternalIP", "1.1.1.1"), "", "node n has not reported the port of its agent yet"},
		{"no address", node(1, "InternalIP", ""), "", "node n has not reported an address yet"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := nodeproxy.Address(row.node)
			if got != row.want || (err == nil) != (row.err == "") || (err != nil && err.Error() != row.err) {
				t.Errorf("got %q and %v", got, err)
			}
		})
	}
}

func TestLocations(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	since := metav1.Unix(0, 0)
	agent := nodeproxy.Agent{Base: url.URL{Scheme: "https", Host: "h:1"}}
	rows := []struct {
		name string
		got  nodeproxy.Location
		want string
	}{
		{"log", nodeproxy.LogLocation(pod, "c", &corev1.PodLogOptions{}), "https://h:1/containerLogs/ns/p/c"},
		{"POD-224 all of a log's options", nodeproxy.LogLocation(pod, "c", &corev1.PodLogOptions{Follow: true,
			Previous: true, Timestamps: true,
			SinceSeconds: ptr.To[int64](1), TailLines: ptr.To[int64](0), LimitBytes: ptr.To[int64](3),
			SinceTime: &since, Stream: ptr.To("Stdout")}),
			"https://h:1/containerLogs/ns/p/c?follow=true&limitBytes=3&previous=true&sinceSeconds=1&" +
				"sinceTime=1970-01-01T00%3A00%3A00Z&stream=Stdout&tailLines=0&timestamps=true"},
		{"exec", nodeproxy.ExecLocation(pod, "c", []string{"sh", "-c", "a b"}, nodeproxy.Streams{Stdin: true,
			Stdout: true, Stderr: true}),
			"https://h:1/exec/ns/p/c?command=sh&command=-c&command=a+b&error=1&input=1&output=1"},
		{"attach", nodeproxy.AttachLocation(pod, "c", nodeproxy.Streams{Stdout: true, TTY: true}),
			"https://h:1/attach/ns/p/c?output=1&tty=1"},
		{"ports", nodeproxy.PortForwardLocation(pod, []int32{80, 81}), "https://h:1/portForward/ns/p?port=80&port=81"},
		{"no ports", nodeproxy.PortForwardLocation(pod, nil), "https://h:1/portForward/ns/p"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			at, err := url.Parse(agent.At(row.got).String())
			if err != nil {
				t.Fatal(err)
			}
			at.RawQuery = sorted(at.Query())
			want, _ := url.Parse(row.want)
			want.RawQuery = sorted(want.Query())
			if at.String() != want.String() {
				t.Errorf("got  %s\nwant %s", at, want)
			}
		})
	}
}

func sorted(query url.Values) string { return query.Encode() }

func TestConfigValidate(t *testing.T) {
	if errs := (&nodeproxy.Config{ClientCertificate: "a"}).Validate(); len(errs) != 1 {
		t.Errorf("got %v", errs)
	}
	if errs := (&nodeproxy.Config{}).Validate(); len(errs) != 0 {
		t.Errorf("got %v", errs)
	}
}

func TestNewReportsUnreadableFiles(t *testing.T) {
	_, err := nodeproxy.New(nodeproxy.Config{CertificateAuthority: filepath.Join(t.TempDir(), "missing")}, nil)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// The agent must show a certificate of the authority, unless a client reads a log and does not care.
func TestAgentVerifies(t *testing.T) {
	fake, other := agenttest.Start(t), agenttest.Start(t)
	lookup := func(context.Context, string) (*corev1.Node, error) { return fake.Node("n"), nil }
	for _, row := range []struct {
		name      string
		authority string
		insecure  bool
		want      string
	}{
		{"of its authority", fake.Config.CertificateAuthority, false, ""},
		{"of another authority", other.Config.CertificateAuthority, false, "certificate signed by unknown authority"},
		{"of another authority, insecure", other.Config.CertificateAuthority, true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			config := fake.Config
			config.CertificateAuthority = row.authority
			nodes, err := nodeproxy.New(config, lookup)
			if err != nil {
				t.Fatal(err)
			}
			agent, err := nodes.Agent(t.Context(), "n", row.insecure)
			if err != nil {
				t.Fatal(err)
			}
			got := get(t, agent)
			if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestAgentOfAnUnknownNode(t *testing.T) {
	missing := apierrors.NewNotFound(corev1.Resource("pods"), "n")
	nodes, err := nodeproxy.New(nodeproxy.Config{}, func(context.Context, string) (*corev1.Node, error) {
		return nil,
			missing
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes.Agent(t.Context(), "n", false); !apierrors.IsNotFound(err) ||
		err.Error() != `nodes "n" not found` {
		t.Errorf("got %v", err)
	}
}

func TestAgentOfASilentNode(t *testing.T) {
	nodes, err := nodeproxy.New(nodeproxy.Config{}, func(context.Context, string) (*corev1.Node,
		error) {
		return &corev1.Node{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes.Agent(t.Context(), "n", false); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://h", Err: errors.New("connection refused")}
	if got := nodeproxy.Unreachable("n", refused); !apierrors.IsServiceUnavailable(got) ||
		got.Error() != "the agent of node n does not answer: connection refused" {
		t.Errorf("got %v", got)
	}
	answered := apierrors.NewBadRequest("no")
	if got := nodeproxy.Unreachable("n", answered); !errors.Is(got, answered) {
		t.Errorf("got %v", got)
	}
	if got := nodeproxy.Unreachable("n", nil); got != nil {
		t.Errorf("got %v", got)
	}
}
