package scenario

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"

	"keelson.dev/test/mesh"
)

// CrossNodeTraffic reaches Pods and Services across two nodes between which there is more than a wire. cut and heal are
// of the way between them, which is cut for less than it takes until a node is given up.
func CrossNodeTraffic(t *testing.T, m mesh.Mesh, cut, heal func(testing.TB)) {
	w := In(t, m)
	e := w.traffic().startEchoes()
	t.Run("cluster address", func(t *testing.T) { w.on(t).traffic().expectAllReached(e) })
	t.Run("source", func(t *testing.T) { w.on(t).traffic().expectSourceAddresses(e) })
	t.Run("node ports", func(t *testing.T) { w.on(t).traffic().expectNodePorts(e) })
	t.Run("apiserver", func(t *testing.T) { w.on(t).traffic().awaitAPIServer(e.clients) })
	t.Run("large transfers", func(t *testing.T) { expectLargeTransfers(w.on(t), e) })
	t.Run("link failure", func(t *testing.T) { w.on(t).traffic().cutOff(e, cut, heal, func(string) {}) })
}

// SecondFamilyTraffic reaches Pods and Services by their addresses of the second family, across what is between two
// nodes.
func SecondFamilyTraffic(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	e := w.traffic().secondFamily(w.traffic().startEchoes())
	t.Run("cluster address", func(t *testing.T) { w.on(t).traffic().expectAllReached(e) })
	t.Run("source", func(t *testing.T) { w.on(t).traffic().expectSourceAddresses(e) })
	t.Run("names", func(t *testing.T) { expectDualStackRecords(w.on(t)) })
	t.Run("node-local traffic", func(t *testing.T) { w.on(t).traffic().awaitOwnNode(e.clients, "local", e.family) })
	t.Run("large transfers", func(t *testing.T) { expectLargeTransfers(w.on(t), e) })
	t.Run("no endpoints", func(t *testing.T) { w.on(t).traffic().awaitNoEndpointsRefusal(e) })
}

// DualStackTraffic reaches Pods, Services and nodes by their addresses of the first family and of the second, where
// nodes reach each other by both.
func DualStackTraffic(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	e := w.traffic().startEchoes()
	t.Run("apiserver", func(t *testing.T) { w.on(t).traffic().awaitAPIServer(e.clients) })
	second := w.traffic().secondFamily(e)
	for name, e := range map[string]echoes{"first": e, "second": second} {
		t.Run(name, func(t *testing.T) {
			t.Run("cluster address", func(t *testing.T) { w.on(t).traffic().expectAllReached(e) })
			t.Run("source", func(t *testing.T) { w.on(t).traffic().expectSourceAddresses(e) })
			t.Run("node ports", func(t *testing.T) { w.on(t).traffic().expectNodePorts(e) })
		})
	}
}

// paired is a Pod with a name below a headless Service that shows its addresses of both families.
const paired = `apiVersion: v1
kind: Service
metadata: {name: pair}
spec: {clusterIP: None, ipFamilyPolicy: RequireDualStack, selector: {app: pair}}
---
apiVersion: v1
kind: Pod
metadata: {name: paired, labels: {app: pair}}
spec:
  hostname: one
  subdomain: pair
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: ` + Server + `, args: ["-http="]}]
`

// expectDualStackRecords looks names up that have an address of each family, by their records and from the addresses.
func expectDualStackRecords(w *World) {
	w.KubectlWith(paired, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/paired", "--timeout=60s")
	pod, domain := w.Pods("app=pair")[0].Status.PodIPs, w.Namespace+".svc.cluster.local."
	service := w.service("echo").Spec.ClusterIPs
	for _, client := range []string{"in-pod-1", "on-node-2"} {
		for name, addresses := range map[string][]string{
			"echo": service, "pair": {pod[0].IP, pod[1].IP}, "one.pair": {pod[0].IP, pod[1].IP},
		} {
			w.traffic().awaitLookup(client, "AAAA", name, addresses[1])
			w.traffic().awaitLookup(client, "A", name, addresses...)
		}
		for i := range service {
			w.traffic().awaitLookup(client, "PTR", service[i], "echo."+domain)
			w.traffic().awaitLookup(client, "PTR", pod[i].IP, "one.pair."+domain)
		}
	}
}

// expectLargeTransfers fetches content larger than a packet, from each Pod by the other.
func expectLargeTransfers(w *World, e echoes) {
	content := bytes.Repeat([]byte("keelson "), 1<<16)
	file := filepath.Join(w.TempDir(), "large")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		w.Fatal(err)
	}
	for i, name := range e.names {
		w.Kubectl("cp", file, w.Namespace+"/"+name+":/tmp/large")
		// What has no room on the way never arrives; what a busy machine makes late does when it is asked for again.
		w.Await("the whole of "+name+"'s file in the other Pod", func() Answer {
			got := w.TryKubectl("", "exec", e.names[1-i], "--", "wget", "-q", "-T", "10", "-O-",
				"http://"+net.JoinHostPort(e.pods[name], "8080")+"/file?path=/tmp/large")
			if got.Stdout == string(content) {
				return ""
			}
			w.Logf("%d of %d bytes of %s's file: %s", len(got.Stdout), len(content), name, got.Stderr)
			return Sawf("%d of %d bytes: %s", len(got.Stdout), len(content), got.Stderr)
		})
	}
}
