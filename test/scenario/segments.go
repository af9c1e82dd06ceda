package scenario

import (
	"bytes"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"keelson.dev/test/mesh"
)

// Segments reaches Pods and Services across two nodes between which there is more than a wire. cut and heal are of the
// way between them, which is cut for less than it takes until a node is given up.
func Segments(t *testing.T, m mesh.Mesh, cut, heal func(testing.TB)) {
	w := In(t, m)
	w.KubectlWith(echoes, "apply", "-f", "-")
	all := w.startClients()
	w.AwaitAvailable("echo", 2)
	pods := w.addresses("app=echo")
	names := slices.Sorted(maps.Keys(pods))
	ip := w.service("echo").Spec.ClusterIP
	t.Run("cluster address", func(t *testing.T) {
		w.on(t).awaitAnswers(all, names, "-n", enough, "http://"+ip+"/hostname")
		w.on(t).awaitAnswers(all, names, "-n", enough, "-u", net.JoinHostPort(ip, "80"))
	})
	t.Run("source", func(t *testing.T) { w.on(t).sourceAddress(all, slices.Collect(maps.Values(pods))) })
	t.Run("node ports", func(t *testing.T) { w.on(t).nodePorts(all, names) })
	t.Run("large", func(t *testing.T) { w.on(t).large(names) })
	t.Run("cut", func(t *testing.T) { w.on(t).cutForAMoment(all, names, ip, cut, heal) })
}

// large fetches what no packet has room for, from each Pod by the other.
func (w *World) large(names []string) {
	content := bytes.Repeat([]byte("keelson "), 1<<16)
	file := filepath.Join(w.TempDir(), "large")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		w.Fatal(err)
	}
	addresses := w.addresses("app=echo")
	for i, name := range names {
		w.Kubectl("cp", file, w.Namespace+"/"+name+":/tmp/large")
		got := w.TryKubectl("", "exec", names[1-i], "--", "wget", "-q", "-T", "10", "-O-",
			"http://"+addresses[name]+":8080/file?path=/tmp/large")
		if got.Stdout != string(content) {
			w.Errorf("%d of %d bytes of %s reach the other Pod: %s", len(got.Stdout), len(content), name, got.Stderr)
		}
	}
}

// cutForAMoment sees that the way is the one that is cut, and that Pods reach each other again, at the addresses that
// they had and by the Service.
func (w *World) cutForAMoment(all clients, names []string, ip string, cut, heal func(testing.TB)) {
	address, far := "", ""
	for _, pod := range w.Pods("app=echo") {
		if pod.Spec.NodeName != w.Mesh.Nodes()[0] {
			address, far = pod.Status.PodIP, pod.Name
		}
	}
	cut(w)
	if a := w.requests("in-pod-1", "http://"+address+":8080/hostname"); len(a.failed) != 1 {
		w.Errorf("the Pod %s is beyond a way that is cut: %v", far, a)
	}
	heal(w)
	w.awaitAnswers(clients{"in-pod-1", "on-node-1"}, []string{far}, "http://"+address+":8080/hostname")
	w.awaitAnswers(all, names, "-n", enough, "http://"+ip+"/hostname")
}
