package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// outside are Services that are reached from beyond the cluster, one that keeps what comes from there to the node where
// it arrives, and one that keeps what comes from within to the client's node. Of the Deployment one Pod runs, so that
// one of two nodes has none.
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
apiVersion: v1
kind: Service
metadata: {name: inner}
spec:
  internalTrafficPolicy: Local
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

// ExternalTraffic reaches Services by the addresses of load balancers, by external addresses and by node ports
// that keep to the node, and queries the health check port that shows a load balancer which nodes those are.
func ExternalTraffic(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(outside, "apply", "-f", "-")
	all := w.traffic().startClients()
	w.AwaitAvailable("lone", 1)
	pod := w.Pods("app=lone")[0]
	names := []string{pod.Name}
	for service, address := range map[string]string{"balanced": "203.0.113.30", "guarded": "203.0.113.31"} {
		setLoadBalancerIP(w, service, address)
	}
	t.Run("load balancer", func(t *testing.T) {
		w.on(t).traffic().awaitAnswers(all, names, "-n", "5", "http://203.0.113.30/hostname")
	})
	t.Run("external address", func(t *testing.T) {
		w.on(t).traffic().awaitAnswers(all, names, "-n", "5", "http://203.0.113.20/hostname")
	})
	t.Run("source ranges", func(t *testing.T) {
		w.on(t).traffic().awaitAnswers(all, names, "-n", "5", "http://203.0.113.31/hostname")
		w.Kubectl("patch", "service", "guarded", "-p", `{"spec":{"loadBalancerSourceRanges":["198.51.100.0/24"]}}`)
		w.on(t).traffic().awaitSilence(all, "http://203.0.113.31/hostname")
	})
	t.Run("external traffic policy", func(t *testing.T) { expectExternalTrafficLocal(w.on(t), &pod) })
	t.Run("internal traffic policy", func(t *testing.T) { expectInternalTrafficLocal(w.on(t), &pod) })
}

// setLoadBalancerIP says in a Service's status that a load balancer has an address for it.
func setLoadBalancerIP(w *World, service, address string) {
	w.Helper()
	w.Kubectl("patch", "service", service, "--subresource=status", "--type=merge", "-p",
		`{"status":{"loadBalancer":{"ingress":[{"ip":"`+address+`"}]}}}`)
}

// expectInternalTrafficLocal asks from both nodes at an address of the cluster: on the node without a Pod nothing
// answers or refuses.
func expectInternalTrafficLocal(w *World, pod *corev1.Pod) {
	w.Helper()
	url := "http://" + w.service("inner").Spec.ClusterIP + "/hostname"
	for i, node := range w.Mesh.Nodes() {
		own := clients{fmt.Sprintf("in-pod-%d", i+1), fmt.Sprintf("on-node-%d", i+1)}
		if node == pod.Spec.NodeName {
			w.traffic().awaitAnswers(own, []string{pod.Name}, "-n", "5", url)
		} else {
			w.traffic().awaitSilence(own, url)
		}
	}
}

// moving is a Service of a load balancer that keeps to the node, moved a Pod of a name on a node behind it.
const (
	moving = `apiVersion: v1
kind: Service
metadata: {name: moving}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: moving}
  ports: [{port: 80, targetPort: 8080}]
`
	moved = `apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: moving}}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ` + Server + `
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`
)

// ExternalClientTraffic asks, from an address beyond the cluster and by the first node, a load balancer's Service
// that keeps to the node: while its Pod is there, which sees that address, and while it is on the other node. The
// health check port of each node follows the Pod. Clients in the cluster reach it either way.
func ExternalClientTraffic(t *testing.T, m mesh.Mesh, from string, ask func(url string) (string, error)) {
	const address = "203.0.113.32"
	w := In(t, m)
	w.KubectlWith(moving, "apply", "-f", "-")
	setLoadBalancerIP(w, "moving", address)
	inside := w.traffic().startClients()
	health := strconv.Itoa(int(w.service("moving").Spec.HealthCheckNodePort))
	for at, has := range m.Nodes() {
		pod := "moved-to-" + has
		w.KubectlWith(fmt.Sprintf(moved, pod, has), "apply", "-f", "-")
		w.Kubectl("wait", "--for=condition=Ready", "pod/"+pod, "--timeout=60s")
		w.traffic().awaitAnswers(inside, []string{pod}, "-n", "5", "http://"+address+"/hostname")
		w.Await("the load balancer's address to lead by the first node to a Pod of that node alone", func() Answer {
			said, err := ask("http://" + address + "/clientip")
			var refused net.Error
			switch host, _, _ := net.SplitHostPort(strings.TrimSpace(said)); {
			case at == 0 && err == nil && host == from, at > 0 && errors.As(err, &refused) && refused.Timeout():
				return ""
			}
			return Sawf("%s sees %q, %v", pod, said, err)
		})
		for i, node := range m.Nodes() {
			awaitHealthCheck(w, "http://"+net.JoinHostPort(nodeIP(w, node), health), i == at)
		}
		w.Kubectl("delete", "pod", pod)
	}
}

// awaitSilence waits until no client gets an answer, nor a refusal.
func (w serviceTraffic) awaitSilence(all clients, url string) {
	w.Helper()
	w.Await("nobody to get an answer from "+url, func() Answer {
		for name, a := range w.each(all, "-w", "1", url) {
			if a.total() > 0 || a.failed["connection refused"] > 0 {
				return Saw(name + ": " + a.String())
			}
		}
		return ""
	})
}

// expectExternalTrafficLocal sends requests to each node from another one: the node with the Pod answers and shows
// the Pod the client's own address, the node without the Pod is silent, and each reports that at its health check
// port.
func expectExternalTrafficLocal(w *World, pod *corev1.Pod) {
	w.Helper()
	has, names := pod.Spec.NodeName, []string{pod.Name}
	service := w.service("kept")
	port := strconv.Itoa(int(service.Spec.Ports[0].NodePort))
	health := strconv.Itoa(int(service.Spec.HealthCheckNodePort))
	nodes := w.Mesh.Nodes()
	for i, name := range nodes {
		other := 1 - i
		client := clients{"on-node-" + strconv.Itoa(other+1)}
		address := nodeIP(w, name)
		if name == has {
			w.traffic().awaitAnswers(client, names, "-n", "5", "http://"+net.JoinHostPort(address, port)+"/hostname")
			seen := w.traffic().seenAs(client[0], address, port)
			want := w.traffic().seenAs(client[0], pod.Status.PodIP, "8080")
			if seen != want {
				w.Errorf("by the node port the Pod sees %q as %q, want %q as by its address", client[0], seen, want)
			}
		} else {
			w.traffic().awaitSilence(client, "http://"+net.JoinHostPort(address, port)+"/hostname")
		}
		awaitHealthCheck(w, "http://"+net.JoinHostPort(address, health), name == has)
	}
}

// seenAs is the address of a client as the Pod behind an address sees it.
func (w serviceTraffic) seenAs(client, address, port string) string {
	w.Helper()
	seen := w.Kubectl("exec", client, "--", "wget", "-q", "-O-", "http://"+net.JoinHostPort(address, port)+"/clientip")
	host, _, err := net.SplitHostPort(strings.TrimSpace(seen))
	if err != nil {
		w.Fatalf("%s at %s: %v", client, address, err)
	}
	return host
}

// awaitHealthCheck waits until a health check port, which the machine reaches on every node, reports whether there is a
// Pod.
func awaitHealthCheck(w *World, url string, local bool) {
	w.Helper()
	want, endpoints := http.StatusServiceUnavailable, 0
	if local {
		want, endpoints = http.StatusOK, 1
	}
	w.Await(fmt.Sprintf("%s to have status %d and %d endpoints", url, want, endpoints), func() Answer {
		var said struct{ LocalEndpoints int }
		status, text := request(w, http.MethodGet, url, "", "")
		if err := json.Unmarshal([]byte(text), &said); err != nil || status != want ||
			said.LocalEndpoints != endpoints {
			return Sawf("status %d, %s", status, text)
		}
		return ""
	})
}
