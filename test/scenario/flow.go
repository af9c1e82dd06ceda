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

// maxSilence is how long a flow is surely remembered by the kernel, which forgets it after 30 s of silence.
const maxSilence = 20 * time.Second

// udpFlow is one flow of each client: datagrams from one port.
type udpFlow struct {
	serviceTraffic
	clients clients
	args    []string
	// used is when the datagrams were last sent, or earlier; by names the Pod that answered each client then.
	used time.Time
	by   map[string]string
}

// send continues the flows. Each must be answered by the Pod that answered it before, unless it was silent for so long
// that the kernel may have forgotten it: then send returns false.
func (f *udpFlow) send() bool {
	f.Helper()
	began := time.Now()
	all := f.each(f.clients, f.args...)
	fresh := time.Since(f.used) < maxSilence
	f.used = began
	for name, a := range all {
		if len(a.by) != 1 || len(a.failed) > 0 {
			f.Errorf("%s: %v, want all of one Pod", name, a)
			continue
		}
		if pod := a.from()[0]; fresh && pod != f.by[name] {
			f.Errorf("%s: %v, want all of %s, with which its flow went on", name, a, f.by[name])
		}
		f.by[name] = a.from()[0]
	}
	return fresh
}

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
