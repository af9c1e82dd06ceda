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

// ServiceTraffic asks Services of every kind from Pods and nodes, over TCP, UDP and SCTP, and looks at who answers.
func ServiceTraffic(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	e := w.traffic().startEchoes()
	t.Run("cluster address", func(t *testing.T) { expectClusterIPTraffic(w.on(t), e) })
	t.Run("source", func(t *testing.T) { w.on(t).traffic().expectSourceAddresses(e) })
	t.Run("node ports", func(t *testing.T) { w.on(t).traffic().expectNodePorts(e) })
	t.Run("affinity", func(t *testing.T) { expectSessionAffinity(w.on(t), e.clients, e.names) })
	t.Run("affinity timeout", func(t *testing.T) { expectAffinityTimeout(w.on(t), e.clients, e.family) })
	t.Run("service proxy name", func(t *testing.T) { expectServiceOfAnotherProxy(w.on(t), e) })
	t.Run("node-local traffic", func(t *testing.T) { w.on(t).traffic().awaitOwnNode(e.clients, "local", e.family) })
	t.Run("traffic distribution", func(t *testing.T) { w.on(t).traffic().awaitOwnNode(e.clients, "near", e.family) })
	t.Run("topology zones", func(t *testing.T) { expectZones(w.on(t), e) })
	t.Run("apiserver", func(t *testing.T) { w.on(t).traffic().awaitAPIServer(e.clients) })
	t.Run("pod proxy", func(t *testing.T) { expectPodsProxied(w.on(t), e.names) })
	t.Run("node proxy", func(t *testing.T) { expectNodesProxied(w.on(t), e.names) })
	t.Run("no endpoints", func(t *testing.T) { w.on(t).traffic().awaitNoEndpointsRefusal(e) })
	t.Run("unready endpoints", func(t *testing.T) { expectUnreadyPods(w.on(t), e.clients) })
	t.Run("udp flow", func(t *testing.T) { expectOneUDPFlow(w.on(t), e.clients) })
	t.Run("terminating endpoint", func(t *testing.T) { expectTerminatingPod(w.on(t), e.clients) })
}

// expectClusterIPTraffic reaches all Pods by name and by address; a Pod reaches itself as well.
func expectClusterIPTraffic(w *World, e echoes) {
	w.traffic().awaitAnswers(e.clients, e.names, "-n", enough, "http://echo/hostname")
	w.traffic().expectAllReached(e)
	w.traffic().awaitAnswers(e.names, e.names, "-n", enough, "http://"+e.ip+"/hostname")
}

// expectAllReached has every client answered by all Pods, at the Service's address.
func (w serviceTraffic) expectAllReached(e echoes) {
	w.Helper()
	target := net.JoinHostPort(e.ip, "80")
	w.awaitAnswers(e.clients, e.names, "-n", enough, "http://"+target+"/hostname")
	for _, network := range []string{"-u", "-s"} {
		w.awaitAnswers(e.clients, e.names, "-n", enough, network, target)
	}
}

// expectSourceAddresses checks that a Pod sees another Pod's own address, on any node, also for requests through a
// Service.
func (w serviceTraffic) expectSourceAddresses(e echoes) {
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

// expectNodePorts reaches all Pods by every node's address.
func (w serviceTraffic) expectNodePorts(e echoes) {
	ports := w.service("ports").Spec.Ports
	for _, name := range w.Mesh.Nodes() {
		address := nodeIPs(w.World, name)[e.family]
		at := func(port int) string { return net.JoinHostPort(address, strconv.Itoa(int(ports[port].NodePort))) }
		w.awaitAnswers(e.clients, e.names, "-n", enough, "http://"+at(0)+"/hostname")
		w.awaitAnswers(e.clients, e.names, "-n", enough, "-u", at(1))
		w.awaitAnswers(e.clients, e.names, "-n", enough, "-s", at(2))
	}
}

// expectServiceOfAnotherProxy leaves a Service to the proxy that its label names, for as long as it has the label.
func expectServiceOfAnotherProxy(w *World, e echoes) {
	const label = "service.kubernetes.io/service-proxy-name"
	url := "http://" + net.JoinHostPort(w.service("foreign").Spec.ClusterIPs[e.family], "80") + "/hostname"
	w.traffic().awaitSilence(e.clients, url)
	w.Kubectl("label", "service", "foreign", label+"-")
	w.traffic().awaitAnswers(e.clients, e.names, "-n", enough, url)
	w.Kubectl("label", "service", "foreign", label+"=another")
	w.traffic().awaitSilence(e.clients, url)
}

// awaitOwnNode reaches the Pods of the client's own node alone.
func (w serviceTraffic) awaitOwnNode(all clients, service string, family int) {
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

// awaitAPIServer reaches the apiserver by the Service kubernetes, which has nothing but the nodes' proxies to lead
// there.
func (w serviceTraffic) awaitAPIServer(all clients) {
	target := "http://" + net.JoinHostPort(kubernetesIP(w.World), "443")
	w.Await("the apiserver to say that it speaks HTTPS alone", func() Answer {
		for name, a := range w.each(all, target) {
			if a.failed["server returned 400 Bad Request"] != 1 {
				return Sawf("%s: %v", name, a)
			}
		}
		return ""
	})
}

// expectZones puts both nodes into one zone, in which all Pods are reached, then each into its own, in which it meets
// its own Pods alone, and takes the zones away again: no Pod is near then.
func expectZones(w *World, e echoes) {
	services := []string{"zone", "close"}
	label := func(zones ...string) {
		for i, node := range w.Mesh.Nodes() {
			w.Kubectl("label", "node", node, "--overwrite", corev1.LabelTopologyZone+zones[i])
		}
	}
	all := func() {
		for _, service := range services {
			w.traffic().awaitAnswers(e.clients, e.names, "-n", enough, "http://"+service+"/hostname")
		}
	}
	label("=both", "=both")
	defer label("-", "-")
	all()
	label("=one", "=two")
	for _, service := range services {
		w.traffic().awaitOwnNode(e.clients, service, e.family)
	}
	label("-", "-")
	all()
}

// awaitNoEndpointsRefusal asks a Service that never has a Pod.
func (w serviceTraffic) awaitNoEndpointsRefusal(e echoes) {
	w.awaitRefusal(e.clients, w.service("empty").Spec.ClusterIPs[e.family], "http", "udp", "sctp")
}

// awaitRefusal lets no client wait for an answer of a Service that has no Pod to send to, over these networks.
func (w serviceTraffic) awaitRefusal(all clients, ip string, networks ...string) {
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

// expectUnreadyPods reaches a Pod that is not ready by the Service alone that publishes such Pods.
func expectUnreadyPods(w *World, all clients) {
	w.KubectlWith(unready, "apply", "-f", "-")
	w.traffic().awaitAnswers(all, []string{"late"}, "-n", "5", "http://"+w.service("early").Spec.ClusterIP+"/hostname")
	w.traffic().awaitRefusal(all, w.service("strict").Spec.ClusterIP, "http")
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

// expectTerminatingPod checks that a terminating Pod answers, as long as it can and no other Pod exists.
func expectTerminatingPod(w *World, all clients) {
	w.KubectlWith(lastPod, "apply", "-f", "-")
	ip := w.service("ending").Spec.ClusterIP
	url := "http://" + ip + "/hostname"
	w.traffic().awaitAnswers(all, []string{"last"}, "-n", "5", url)
	w.Kubectl("delete", "pod", "last", "--wait=false")
	w.endpoints().await("ending", map[string]string{"last": "ST"})
	for name, a := range w.traffic().each(all, "-t", "4", url) {
		if len(a.failed) > 0 || a.by["last"] == 0 {
			w.Errorf("%s: %v while the last Pod ends and answers", name, a)
		}
	}
	w.traffic().awaitRefusal(all, ip, "http")
}
