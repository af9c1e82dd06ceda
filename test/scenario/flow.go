package scenario

import (
	"fmt"
	"net"
)

const (
	// flowing is a Service of UDP, behindFlow a Pod of that name behind it.
	flowing = `apiVersion: v1
kind: Service
metadata: {name: flowing}
spec:
  selector: {app: flowing}
  ports: [{port: 80, protocol: UDP, targetPort: 8081}]
`
	behindFlow = `apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: flowing}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ` + Server + `
    args: ["-udp=:8081"]
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`
)

// expectOneUDPFlow sends all datagrams of a client from one port, which are one flow to the kernel and have no end. It
// stays with its Pod as long as that is there, whoever comes beside it, and goes on with another Pod after that.
func expectOneUDPFlow(w *World, all clients) {
	w.KubectlWith(flowing, "apply", "-f", "-")
	target := net.JoinHostPort(w.service("flowing").Spec.ClusterIP, "80")
	flow := []string{"-n", "5", "-u", "-p", "18081", target}
	w.KubectlWith(fmt.Sprintf(behindFlow, "gone"), "apply", "-f", "-")
	w.traffic().awaitAnswers(all, []string{"gone"}, flow...)
	w.KubectlWith(fmt.Sprintf(behindFlow, "next"), "apply", "-f", "-")
	w.traffic().awaitAnswers(all, []string{"gone", "next"}, "-n", enough, "-u", target)
	for name, a := range w.traffic().each(all, flow...) {
		if a.by["gone"] != 5 {
			w.Errorf("%s: %v, want all of the Pod that its flow began with", name, a)
		}
	}
	w.Kubectl("delete", "pod", "gone")
	w.traffic().awaitAnswers(all, []string{"next"}, flow...)
}
