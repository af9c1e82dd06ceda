package scenario

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// outside are Services that are reached from beyond the cluster, and one that keeps to its client's node. Of the
// Deployment one Pod runs, so that one of two nodes has none.
const outside = `apiVersion: v1
kind: Service
metadata: {name: balanced}
spec:
  type: LoadBalancer
  selector: {app: lone}
  externalIPs: [203.0.113.20]
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: guarded}
spec:
  type: LoadBalancer
  selector: {app: lone}
  loadBalancerSourceRanges: [0.0.0.0/0]
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: kept}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: lone}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: lone}
spec:
  selector: {matchLabels: {app: lone}}
  template:
    metadata: {labels: {app: lone}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: ` + Server + `
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`

// Outside reaches Services by the addresses of load balancers, by external addresses and by node ports that keep to
// the node, and asks the health check port that tells a load balancer which nodes those are.
func Outside(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(outside, "apply", "-f", "-")
	all := w.startClients()
	w.AwaitAvailable("lone", 1)
	pod := w.Pods("app=lone")[0]
	names := []string{pod.Name}
	for service, address := range map[string]string{"balanced": "203.0.113.30", "guarded": "203.0.113.31"} {
		w.Kubectl("patch", "service", service, "--subresource=status", "--type=merge", "-p",
			`{"status":{"loadBalancer":{"ingress":[{"ip":"`+address+`"}]}}}`)
	}
	t.Run("balancer", func(t *testing.T) {
		w.on(t).awaitAnswers(all, names, "-n", "5", "http://203.0.113.30/hostname")
	})
	t.Run("external address", func(t *testing.T) {
		w.on(t).awaitAnswers(all, names, "-n", "5", "http://203.0.113.20/hostname")
	})
	t.Run("source ranges", func(t *testing.T) {
		w.on(t).awaitAnswers(all, names, "-n", "5", "http://203.0.113.31/hostname")
		w.Kubectl("patch", "service", "guarded", "-p", `{"spec":{"loadBalancerSourceRanges":["198.51.100.0/24"]}}`)
		w.on(t).awaitSilence(all, "http://203.0.113.31/hostname")
	})
	t.Run("kept to the node", func(t *testing.T) { w.on(t).keptToNode(&pod) })
}

// awaitSilence waits until no client gets an answer, nor a refusal.
func (w *World) awaitSilence(all clients, url string) {
	w.Helper()
	w.Await("nobody to get an answer from "+url, func() string {
		for name, a := range w.each(all, "-w", "1", url) {
			if a.total() > 0 || a.failed["connection refused"] > 0 {
				return name + ": " + a.String()
			}
		}
		return ""
	})
}

// keptToNode asks each node from the other: the one with the Pod answers and shows it the client's own address, the
// one without is silent, and each says so by its health check port.
func (w *World) keptToNode(pod *corev1.Pod) {
	w.Helper()
	has, names := pod.Spec.NodeName, []string{pod.Name}
	service := w.service("kept")
	port := strconv.Itoa(int(service.Spec.Ports[0].NodePort))
	health := strconv.Itoa(int(service.Spec.HealthCheckNodePort))
	nodes := w.Mesh.Nodes()
	for i, name := range nodes {
		other := 1 - i
		client := clients{"on-node-" + strconv.Itoa(other+1)}
		address := w.internalIP(name)
		if name == has {
			w.awaitAnswers(client, names, "-n", "5", "http://"+net.JoinHostPort(address, port)+"/hostname")
			seen, want := w.seenAs(client[0], address, port), w.seenAs(client[0], pod.Status.PodIP, "8080")
			if seen != want {
				w.Errorf("by the node port the Pod sees %q as %q, want %q as by its address", client[0], seen, want)
			}
		} else {
			w.awaitSilence(client, "http://"+net.JoinHostPort(address, port)+"/hostname")
		}
		w.expectHealth("http://"+net.JoinHostPort(address, health), name == has)
	}
}

// seenAs is the address of a client as the Pod behind an address sees it.
func (w *World) seenAs(client, address, port string) string {
	w.Helper()
	seen := w.Kubectl("exec", client, "--", "wget", "-q", "-O-", "http://"+net.JoinHostPort(address, port)+"/clientip")
	host, _, err := net.SplitHostPort(strings.TrimSpace(seen))
	if err != nil {
		w.Fatalf("%s at %s: %v", client, address, err)
	}
	return host
}

// expectHealth asks a health check port, which the machine reaches on every node.
func (w *World) expectHealth(url string, local bool) {
	w.Helper()
	want, endpoints := http.StatusServiceUnavailable, 0
	if local {
		want, endpoints = http.StatusOK, 1
	}
	var said struct{ LocalEndpoints int }
	status, text := request(w, http.MethodGet, url, "", "")
	if err := json.Unmarshal([]byte(text), &said); err != nil || status != want || said.LocalEndpoints != endpoints {
		w.Errorf("%s: status %d, %s, want %d and %d endpoints", url, status, text, want, endpoints)
	}
}

// internalIP is the address at which a node is reached.
func (w *World) internalIP(name string) string {
	w.Helper()
	addresses := w.node(name).Status.Addresses
	at := slices.IndexFunc(addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
	if at < 0 {
		w.Fatalf("node %s has no internal address: %v", name, addresses)
	}
	return addresses[at].Address
}
