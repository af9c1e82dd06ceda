package scenario

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// echoes is a Deployment whose Pods answer with their names over TCP and UDP, one on each of two nodes, with Services
// of every type in front.
const echoes = `apiVersion: v1
kind: Service
metadata: {name: echo}
spec:
  selector: {app: echo}
  ports:
  - {name: http, port: 80, targetPort: http}
  - {name: udp, port: 80, protocol: UDP, targetPort: 8081}
---
apiVersion: v1
kind: Service
metadata: {name: sticky}
spec:
  selector: {app: echo}
  sessionAffinity: ClientIP
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: local}
spec:
  selector: {app: echo}
  internalTrafficPolicy: Local
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: near}
spec:
  selector: {app: echo}
  trafficDistribution: PreferSameNode
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: ports}
spec:
  type: NodePort
  selector: {app: echo}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: udp, port: 81, protocol: UDP, targetPort: 8081}
---
apiVersion: v1
kind: Service
metadata: {name: empty}
spec:
  selector: {app: nobody}
  ports:
  - {name: http, port: 80}
  - {name: udp, port: 80, protocol: UDP}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo}
spec:
  replicas: 2
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule,
        labelSelector: {matchLabels: {app: echo}}}
      containers:
      - name: main
        image: ` + Server + `
        args: ["-udp=:8081"]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`

// enough is how many requests reach each of two Pods, if each has an even chance: all but one in 2^39 times.
const enough = "40"

// Traffic asks Services of every kind from Pods and nodes, over TCP and UDP, and looks at who answers.
func Traffic(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(echoes, "apply", "-f", "-")
	all := w.startClients()
	w.AwaitAvailable("echo", 2)
	pods := w.addresses("app=echo")
	names := slices.Sorted(maps.Keys(pods))
	t.Run("cluster address", func(t *testing.T) { w.on(t).clusterAddress(all, names) })
	t.Run("source", func(t *testing.T) { w.on(t).sourceAddress(all, slices.Collect(maps.Values(pods))) })
	t.Run("node ports", func(t *testing.T) { w.on(t).nodePorts(all, names) })
	t.Run("affinity", func(t *testing.T) { w.on(t).affinity(all, names) })
	t.Run("local", func(t *testing.T) { w.on(t).ownNode(all, "local") })
	t.Run("near", func(t *testing.T) { w.on(t).ownNode(all, "near") })
	t.Run("proxied", func(t *testing.T) { w.on(t).proxied(names) })
	t.Run("nobody there", func(t *testing.T) { w.on(t).nobodyThere(all) })
}

// on is the same world, whose failures are those of a part of its test.
func (w *World) on(t *testing.T) *World {
	part := *w
	part.TB = t
	return &part
}

// clusterAddress reaches all Pods by name and by address; a Pod reaches itself as well.
func (w *World) clusterAddress(all clients, names []string) {
	ip := w.service("echo").Spec.ClusterIP
	w.awaitAnswers(all, names, "-n", enough, "http://echo/hostname")
	w.awaitAnswers(all, names, "-n", enough, "http://"+ip+"/hostname")
	w.awaitAnswers(all, names, "-n", enough, "-u", net.JoinHostPort(ip, "80"))
	w.awaitAnswers(names, names, "-n", enough, "http://"+ip+"/hostname")
}

// sourceAddress is what a Pod sees of another: its address, on whatever node, and also where it was asked by a Service.
func (w *World) sourceAddress(all clients, pods []string) {
	type target struct{ address, port string }
	targets := []target{{w.service("echo").Spec.ClusterIP, "80"}}
	for _, pod := range pods {
		targets = append(targets, target{pod, "8080"})
	}
	addresses := w.addresses("app=client")
	for _, client := range all {
		if strings.HasPrefix(client, "on-node-") {
			continue
		}
		for _, target := range targets {
			if seen := w.seenAs(client, target.address, target.port); seen != addresses[client] {
				w.Errorf("%s at %s is seen as %q by %s", client, addresses[client], seen, target.address)
			}
		}
	}
}

// nodePorts reaches all Pods by every node's address.
func (w *World) nodePorts(all clients, names []string) {
	ports := w.service("ports").Spec.Ports
	for _, name := range w.Mesh.Nodes() {
		address := w.internalIP(name)
		tcp, udp := strconv.Itoa(int(ports[0].NodePort)), strconv.Itoa(int(ports[1].NodePort))
		w.awaitAnswers(all, names, "-n", enough, "http://"+net.JoinHostPort(address, tcp)+"/hostname")
		w.awaitAnswers(all, names, "-n", enough, "-u", net.JoinHostPort(address, udp))
	}
}

// affinity keeps each client with the Pod that it met first.
func (w *World) affinity(all clients, names []string) {
	met := map[string]string{}
	for range 2 {
		for name, a := range w.each(all, "-n", "20", "http://sticky/hostname") {
			if len(a.failed) > 0 || len(a.by) != 1 || !slices.Contains(names, a.from()[0]) {
				w.Errorf("%s: %v, want one of %v for all requests", name, a, names)
				continue
			}
			if before := met[name]; before != "" && before != a.from()[0] {
				w.Errorf("%s met %s first and %v now", name, before, a)
			}
			met[name] = a.from()[0]
		}
	}
}

// ownNode reaches the Pods of the client's own node alone.
func (w *World) ownNode(all clients, service string) {
	nodes := map[string]string{}
	for _, pod := range w.Pods("app in (echo, client)") {
		nodes[pod.Name] = pod.Spec.NodeName
	}
	w.Await("each client to meet the Pods of its node", func() string {
		for name, a := range w.each(all, "-n", "10", "http://"+service+"/hostname") {
			if len(a.failed) > 0 || slices.ContainsFunc(a.from(),
				func(pod string) bool { return nodes[pod] != nodes[name] }) {
				return fmt.Sprintf("%s on %s: %v of %v", name, nodes[name], a, nodes)
			}
		}
		return ""
	})
}

// nobodyThere is refused at once, instead of waiting for an answer.
func (w *World) nobodyThere(all clients) {
	ip := w.service("empty").Spec.ClusterIP
	for _, args := range [][]string{{"http://" + ip}, {"-u", net.JoinHostPort(ip, "80")}} {
		w.Await("a Service without Pods to refuse", func() string {
			for name, a := range w.each(all, append([]string{"-w", "5"}, args...)...) {
				// A process of the node itself is told so of a datagram before it leaves.
				if a.total() > 0 || a.failed["connection refused"]+a.failed["operation not permitted"] != 1 {
					return fmt.Sprintf("%s %s: %v", name, strings.Join(args, " "), a)
				}
			}
			return ""
		})
	}
}
