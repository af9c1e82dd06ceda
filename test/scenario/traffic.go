package scenario

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// Traffic asks Services of every kind from Pods and nodes, over TCP, UDP and SCTP, and looks at who answers.
func Traffic(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	e := w.startEchoes()
	t.Run("cluster address", func(t *testing.T) { w.on(t).clusterAddress(e) })
	t.Run("source", func(t *testing.T) { w.on(t).sourceAddress(e) })
	t.Run("node ports", func(t *testing.T) { w.on(t).nodePorts(e) })
	t.Run("affinity", func(t *testing.T) { w.on(t).affinity(e.clients, e.names) })
	t.Run("brief affinity", func(t *testing.T) { w.on(t).briefAffinity(e.clients, e.family) })
	t.Run("another proxy's", func(t *testing.T) { w.on(t).anotherProxys(e) })
	t.Run("local", func(t *testing.T) { w.on(t).ownNode(e.clients, "local", e.family) })
	t.Run("near", func(t *testing.T) { w.on(t).ownNode(e.clients, "near", e.family) })
	t.Run("zones", func(t *testing.T) { w.on(t).zones(e) })
	t.Run("apiserver", func(t *testing.T) { w.on(t).apiserver(e.clients) })
	t.Run("proxied", func(t *testing.T) { w.on(t).proxied(e.names) })
	t.Run("nodes proxied", func(t *testing.T) { w.on(t).nodesProxied(e.names) })
	t.Run("nobody there", func(t *testing.T) { w.on(t).nobodyThere(e) })
	t.Run("not ready", func(t *testing.T) { w.on(t).notReady(e.clients) })
	t.Run("one flow", func(t *testing.T) { w.on(t).oneFlow(e.clients) })
	t.Run("last one ends", func(t *testing.T) { w.on(t).lastOneEnds(e.clients) })
}

// on is the same world, whose failures are those of a part of its test.
func (w *World) on(t *testing.T) *World {
	part := *w
	part.TB = t
	return &part
}

// clusterAddress reaches all Pods by name and by address; a Pod reaches itself as well.
func (w *World) clusterAddress(e echoes) {
	w.awaitAnswers(e.clients, e.names, "-n", enough, "http://echo/hostname")
	w.reachesAll(e)
	w.awaitAnswers(e.names, e.names, "-n", enough, "http://"+e.ip+"/hostname")
}

// reachesAll has every client answered by all Pods, at the Service's address.
func (w *World) reachesAll(e echoes) {
	w.Helper()
	target := net.JoinHostPort(e.ip, "80")
	w.awaitAnswers(e.clients, e.names, "-n", enough, "http://"+target+"/hostname")
	for _, network := range []string{"-u", "-s"} {
		w.awaitAnswers(e.clients, e.names, "-n", enough, network, target)
	}
}

// sourceAddress is what a Pod sees of another: its address, on whatever node, and also where it was asked by a Service.
func (w *World) sourceAddress(e echoes) {
	type target struct{ address, port string }
	targets := []target{{e.ip, "80"}}
	for _, pod := range e.pods {
		targets = append(targets, target{pod, "8080"})
	}
	addresses := w.familyAddresses("app=client", e.family)
	for _, client := range e.clients {
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
func (w *World) nodePorts(e echoes) {
	ports := w.service("ports").Spec.Ports
	for _, name := range w.Mesh.Nodes() {
		address := w.internalIPs(name)[e.family]
		at := func(port int) string { return net.JoinHostPort(address, strconv.Itoa(int(ports[port].NodePort))) }
		w.awaitAnswers(e.clients, e.names, "-n", enough, "http://"+at(0)+"/hostname")
		w.awaitAnswers(e.clients, e.names, "-n", enough, "-u", at(1))
		w.awaitAnswers(e.clients, e.names, "-n", enough, "-s", at(2))
	}
}

// anotherProxys leaves a Service to the proxy that its label names, for as long as it has the label.
func (w *World) anotherProxys(e echoes) {
	const label = "service.kubernetes.io/service-proxy-name"
	url := "http://" + net.JoinHostPort(w.service("foreign").Spec.ClusterIPs[e.family], "80") + "/hostname"
	w.awaitSilence(e.clients, url)
	w.Kubectl("label", "service", "foreign", label+"-")
	w.awaitAnswers(e.clients, e.names, "-n", enough, url)
	w.Kubectl("label", "service", "foreign", label+"=another")
	w.awaitSilence(e.clients, url)
}

// ownNode reaches the Pods of the client's own node alone.
func (w *World) ownNode(all clients, service string, family int) {
	target := "http://" + net.JoinHostPort(w.service(service).Spec.ClusterIPs[family], "80") + "/hostname"
	nodes := map[string]string{}
	for _, pod := range w.Pods("app in (echo, client)") {
		nodes[pod.Name] = pod.Spec.NodeName
	}
	w.Await("each client to meet the Pods of its node", func() Answer {
		for name, a := range w.each(all, "-n", "10", target) {
			if len(a.failed) > 0 || slices.ContainsFunc(a.from(),
				func(pod string) bool { return nodes[pod] != nodes[name] }) {
				return Sawf("%s on %s: %v of %v", name, nodes[name], a, nodes)
			}
		}
		return ""
	})
}

// apiserver reaches the apiserver by the Service kubernetes, which has nothing but the nodes' proxies to lead there.
func (w *World) apiserver(all clients) {
	target := "http://" + net.JoinHostPort(w.kubernetesIP(), "443")
	w.Await("the apiserver to say that it speaks HTTPS alone", func() Answer {
		for name, a := range w.each(all, target) {
			if a.failed["server returned 400 Bad Request"] != 1 {
				return Sawf("%s: %v", name, a)
			}
		}
		return ""
	})
}

// zones puts both nodes into one zone, in which all Pods are reached, then each into its own, in which it meets its own
// Pods alone, and takes the zones away again: nobody is near then.
func (w *World) zones(e echoes) {
	services := []string{"zone", "close"}
	label := func(zones ...string) {
		for i, node := range w.Mesh.Nodes() {
			w.Kubectl("label", "node", node, "--overwrite", corev1.LabelTopologyZone+zones[i])
		}
	}
	all := func() {
		for _, service := range services {
			w.awaitAnswers(e.clients, e.names, "-n", enough, "http://"+service+"/hostname")
		}
	}
	label("=both", "=both")
	defer label("-", "-")
	all()
	label("=one", "=two")
	for _, service := range services {
		w.ownNode(e.clients, service, e.family)
	}
	label("-", "-")
	all()
}

// nobodyThere asks a Service that never has a Pod.
func (w *World) nobodyThere(e echoes) {
	w.awaitRefusal(e.clients, w.service("empty").Spec.ClusterIPs[e.family], "http", "udp", "sctp")
}

// awaitRefusal has nobody wait for an answer of a Service that has no Pod to send to, over these networks.
func (w *World) awaitRefusal(all clients, ip string, networks ...string) {
	w.Helper()
	for _, network := range networks {
		target := net.JoinHostPort(ip, "80")
		args := append([]string{"-w", "5"}, map[string][]string{
			"http": {"http://" + target}, "udp": {"-u", target}, "sctp": {"-s", target},
		}[network]...)
		w.Await("a Service without Pods to refuse", func() Answer {
			for name, a := range w.each(all, args...) {
				// A process of the node itself is told so of a packet that it makes before it leaves.
				if a.total() > 0 || a.failed["connection refused"]+a.failed["operation not permitted"] != 1 {
					return Sawf("%s %s: %v", name, strings.Join(args, " "), a)
				}
			}
			return ""
		})
	}
}

// unready is a Pod that is never ready, behind a Service that wants such Pods and one that does not.
const unready = `apiVersion: v1
kind: Service
metadata: {name: early}
spec:
  publishNotReadyAddresses: true
  selector: {app: never}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: strict}
spec:
  selector: {app: never}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: late, labels: {app: never}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ` + Server + `
    readinessProbe: {httpGet: {path: /nosuch, port: 8080}, periodSeconds: 1}
`

// notReady reaches a Pod that is not ready by the Service alone that publishes such Pods.
func (w *World) notReady(all clients) {
	w.KubectlWith(unready, "apply", "-f", "-")
	w.awaitAnswers(all, []string{"late"}, "-n", "5", "http://"+w.service("early").Spec.ClusterIP+"/hostname")
	w.awaitRefusal(all, w.service("strict").Spec.ClusterIP, "http")
}

// lastPod is the only one behind its Service, and goes on after it was told to end, for longer than all clients of a
// busy machine take to ask it.
const lastPod = `apiVersion: v1
kind: Service
metadata: {name: ending}
spec:
  selector: {app: ending}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: last, labels: {app: ending}}
spec:
  terminationGracePeriodSeconds: 60
  containers:
  - name: main
    image: ` + Server + `
    args: ["-term-delay=25s"]
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`

// lastOneEnds is answered by a Pod that ends, as long as it answers and there is no other.
func (w *World) lastOneEnds(all clients) {
	w.KubectlWith(lastPod, "apply", "-f", "-")
	ip := w.service("ending").Spec.ClusterIP
	url := "http://" + ip + "/hostname"
	w.awaitAnswers(all, []string{"last"}, "-n", "5", url)
	w.Kubectl("delete", "pod", "last", "--wait=false")
	w.awaitEndpoints("ending", map[string]string{"last": "ST"})
	for name, a := range w.each(all, "-t", "4", url) {
		if len(a.failed) > 0 || a.by["last"] == 0 {
			w.Errorf("%s: %v while the last Pod ends and answers", name, a)
		}
	}
	w.awaitRefusal(all, ip, "http")
}
