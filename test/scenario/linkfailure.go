package scenario

import (
	"testing"

	"keelson.dev/test/mesh"
)

// LinkFailure cuts the link of the second node: the first node continues with its own Pods once the second one
// counts as unreachable. When the link is back, Pods of both nodes reach all again.
func LinkFailure(t *testing.T, m mesh.Mesh, cut, heal func(testing.TB)) {
	w := In(t, m)
	e := w.traffic().startEchoes()
	w.traffic().awaitAnswers(e.clients, e.names, "-n", enough, "http://echo/hostname")
	w.traffic().cutOff(e, cut, heal, func(near string) {
		w.traffic().awaitAnswers(clients{"in-pod-1", "on-node-1"}, []string{near}, "-n", enough, "http://echo/hostname")
	})
	w.traffic().awaitAnswers(e.clients, e.names, "-n", enough, "http://echo/hostname")
}

// cutOff cuts the way to the second node, sees that its Pod is beyond it, and does something meanwhile. When the way is
// healed, all Pods are reached again, that one at the address that it had.
func (w serviceTraffic) cutOff(e echoes, cut, heal func(testing.TB), meanwhile func(near string)) {
	w.Helper()
	var near, far []string
	for _, pod := range w.Pods("app=echo") {
		if pod.Spec.NodeName == w.Mesh.Nodes()[0] {
			near = append(near, pod.Name)
		} else {
			far = append(far, pod.Name)
		}
	}
	if len(near) != 1 || len(far) != 1 {
		w.Fatalf("the Pods near are %v and far %v, want one each", near, far)
	}
	address := "http://" + e.pods[far[0]] + ":8080/hostname"
	cut(w)
	if a := w.requests("in-pod-1", address); len(a.failed) != 1 {
		w.Errorf("the Pod %s is beyond a way that is cut: %v", far[0], a)
	}
	meanwhile(near[0])
	heal(w)
	w.awaitAnswers(clients{"in-pod-1", "on-node-1"}, far, address)
	w.expectAllReached(e)
}
