package scenario

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// LinkCut cuts the link of the second node: the first one goes on with its own Pods once the other is given up. When
// the link is back, Pods of both nodes reach all again.
func LinkCut(t *testing.T, m mesh.Mesh, cut, heal func(testing.TB)) {
	w := In(t, m)
	w.KubectlWith(echoes, "apply", "-f", "-")
	all := w.startClients()
	w.AwaitAvailable("echo", 2)
	names := slices.Sorted(maps.Keys(w.addresses("app=echo")))
	w.awaitAnswers(all, names, "-n", enough, "http://echo/hostname")
	var near []string
	for _, pod := range w.Pods("app=echo") {
		if pod.Spec.NodeName == m.Nodes()[0] {
			near = append(near, pod.Name)
		}
	}
	cut(t)
	far := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(near, name) })
	if len(near) != 1 || len(far) != 1 {
		t.Fatalf("the Pods near are %v and far %v, want one each", near, far)
	}
	address := w.addresses("app=echo")[far[0]]
	if a := w.requests("in-pod-1", "http://"+address+":8080/hostname"); len(a.failed) != 1 {
		t.Errorf("the Pod %s is beyond a link that is cut: %v", far[0], a)
	}
	w.awaitAnswers(clients{"in-pod-1", "on-node-1"}, near, "-n", enough, "http://echo/hostname")
	heal(t)
	w.awaitAnswers(all, names, "-n", enough, "http://echo/hostname")
	if a := w.requests("in-pod-1", "http://"+address+":8080/hostname"); strings.Join(a.from(), " ") != far[0] {
		t.Errorf("the Pod %s does not answer at the address that it had: %v", far[0], a)
	}
}
