package scenario

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// onHostPort is a Pod that answers on a port of its node.
const onHostPort = `apiVersion: v1
kind: Pod
metadata: {name: onport}
spec:
  nodeSelector: {kubernetes.io/hostname: node-1}
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ` + Server + `
    ports: [{containerPort: 8080, hostPort: 18273}]
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`

// HostPort connects to a Pod by a port of its node, which is the machine itself: by the node's address and by the
// loopback one, until the Pod is gone.
//
// SET-149
func HostPort(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(onHostPort, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/onport", "--timeout=60s")
	pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), "onport", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Each request has a connection of its own: one that is open would live on without the port.
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	addresses := []string{net.JoinHostPort(pod.Status.HostIP, "18273"), "127.0.0.1:18273"}
	for _, address := range addresses {
		if got := strings.TrimSpace(fetchURL(w, client, "http://"+address+"/hostname")); got != "onport" {
			t.Errorf("%s answers %q, want the Pod", address, got)
		}
	}
	w.Kubectl("delete", "pod", "onport")
	for _, address := range addresses {
		if conn, err := net.DialTimeout("tcp", address, 2*time.Second); err == nil {
			conn.Close()
			t.Errorf("%s is still open after the Pod has gone", address)
		}
	}
	// Another Pod takes the port over.
	w.KubectlWith(strings.ReplaceAll(onHostPort, "onport", "heir"), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/heir", "--timeout=60s")
	if got := strings.TrimSpace(fetchURL(w, client, "http://"+addresses[0]+"/hostname")); got != "heir" {
		t.Errorf("%s answers %q, want the Pod that has the port now", addresses[0], got)
	}
}

func fetchURL(w *World, client *http.Client, url string) string {
	w.Helper()
	response, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
