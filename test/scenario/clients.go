package scenario

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// client is a Pod on a node that asks others: with a network of its own, or from the node's.
func client(name, node string, host bool) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: client}}
spec:
  nodeName: %s
  hostNetwork: %t
  dnsPolicy: ClusterFirstWithHostNet
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: %s, args: ["-http="]}]
`, name, node, host, Server)
}

// startClients makes two clients on each node: from a Pod, and from the node. Both ask the cluster's DNS.
func (w *World) startClients() {
	w.Helper()
	var manifest strings.Builder
	for i, node := range w.Mesh.Nodes() {
		pod, onNode := fmt.Sprintf("in-pod-%d", i+1), fmt.Sprintf("on-node-%d", i+1)
		manifest.WriteString(client(pod, node, false) + client(onNode, node, true))
	}
	w.KubectlWith(manifest.String(), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=client", "--timeout=60s")
}

// lookup asks for the records of a name, in a Pod. What is wrong takes the place of the records.
func (w *World) lookup(pod, kind, name string) []string {
	w.Helper()
	r := w.TryKubectl("", "exec", pod, "--", "nslookup", "-type="+kind, name)
	if r.Code != 0 {
		_, reason, _ := strings.Cut(r.Stderr, "lookup ")
		reason, _, _ = strings.Cut(reason, "\n")
		return []string{"failed: " + reason}
	}
	return strings.Fields(r.Stdout)
}

// awaitLookup waits until a name has just these records.
func (w *World) awaitLookup(pod, kind, name string, want ...string) {
	w.Helper()
	slices.Sort(want)
	w.Await(fmt.Sprintf("the %s records %v of %s", kind, want, name), func() string {
		if got := w.lookup(pod, kind, name); !slices.Equal(got, want) {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// awaitNoName waits until a name does not exist.
func (w *World) awaitNoName(pod, name string) {
	w.Helper()
	w.Await("nobody to know "+name, func() string {
		got := w.lookup(pod, "A", name)
		if len(got) == 1 && strings.HasSuffix(got[0], ": no such host") {
			return ""
		}
		return fmt.Sprint(got)
	})
}

// addresses maps the Pods of a selector to their addresses.
func (w *World) addresses(selector string) map[string]string {
	w.Helper()
	all := map[string]string{}
	for _, pod := range w.Pods(selector) {
		all[pod.Name] = pod.Status.PodIP
	}
	return all
}

// service reads a Service.
func (w *World) service(name string) *corev1.Service {
	w.Helper()
	s, err := w.Client.CoreV1().Services(w.Namespace).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return s
}
