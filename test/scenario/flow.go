package scenario

import (
	"fmt"
	"net"
	"time"
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

// expectOneUDPFlow sends all datagrams of a client from one port, which are one flow to the kernel and have no
// end. The flow stays with its Pod as long as that exists, even if other Pods are added, and continues with
// another Pod after that.
func expectOneUDPFlow(w *World, all clients) {
	w.KubectlWith(flowing, "apply", "-f", "-")
	target := net.JoinHostPort(w.service("flowing").Spec.ClusterIP, "80")
	f := &udpFlow{serviceTraffic: w.traffic(), clients: all, by: map[string]string{},
		args: []string{"-n", "5", "-u", "-p", "18081", target}}
	w.KubectlWith(fmt.Sprintf(behindFlow, "gone"), "apply", "-f", "-")
	f.awaitAnswers(all, []string{"gone"}, f.args...)
	f.send()
	w.KubectlWith(fmt.Sprintf(behindFlow, "next"), "apply", "-f", "-")
	w.Await("both Pods to answer, and each flow to stay", func() Answer {
		f.send()
		for name, a := range f.each(all, "-n", enough, "-u", target) {
			if len(a.failed) > 0 || !a.shared([]string{"gone", "next"}) {
				return Sawf("%s: %v", name, a)
			}
		}
		if !f.send() {
			return Sawf("the flows were silent for %v", maxSilence)
		}
		return ""
	})
	w.Kubectl("delete", "pod", "gone")
	f.awaitAnswers(all, []string{"next"}, f.args...)
}
