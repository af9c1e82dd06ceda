package scenario

import (
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// together is a Pod whose containers work with each other: an init container of another image leaves a file and a
// variable, a sidecar and two main containers share network and folder, and the second main container ends when the
// first has.
const together = `apiVersion: v1
kind: Pod
metadata: {name: together}
spec:
  initContainers:
  - name: prepare
    image: ` + HelloV2 + `
    command: ["sh", "-c", "echo version $VERSION at $POD_IP > /exchange/prepared;
      echo NAME=\\'$VERSION.0\\' > /exchange/env"]
    env: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
    volumeMounts: [{name: work, mountPath: /exchange}]
  - name: sidecar
    image: ` + Server + `
    restartPolicy: Always
    args: ["-http=127.0.0.1:8081"]
    volumeMounts: [{name: work, mountPath: /exchange}]
  containers:
  - name: first
    image: ` + Server + `
    env: [{name: NAME, valueFrom: {fileKeyRef: {volumeName: work, path: env, key: NAME}}}]
    args: ["-http=127.0.0.1:8080", "-term-delay=1s", "-termination-path=/exchange/end",
      "-termination-message=the first has ended"]
    volumeMounts: [{name: work, mountPath: /exchange}]
  - name: second
    image: ` + HelloV1 + `
    args: ["-http="]
    lifecycle: {preStop: {exec: {command: [sh, -c,
      "until [ -f /exchange/end ]; do sleep 0.1; done; cat /exchange/end > /dev/termination-log"]}}}
    volumeMounts: [{name: work, mountPath: /exchange}]
  volumes: [{name: work, emptyDir: {}}]
`

// SharedVolumes lets the containers of one Pod find each other over their network and their folder, in both directions,
// and agree on the order in which they end.
//
// POD-008 POD-190 POD-194 POD-251
func SharedVolumes(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(together, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/together", "--timeout=60s")
	w.says("2.0", "exec", "together", "-c", "first", "--", "sh", "-c", "echo $NAME")
	ip := strings.TrimSpace(w.Kubectl("get", "pod", "together", "-o", "jsonpath={.status.podIP}"))
	for _, test := range []struct{ from, write, port, read, want string }{
		{"sidecar", "", "8080", "prepared", "version 2 at " + ip},
		{"sidecar", "ping", "8080", "ping", "from sidecar"},
		{"first", "pong", "8081", "pong", "from first"},
	} {
		script := `wget -q -O - "http://127.0.0.1:` + test.port + `/file?path=/exchange/` + test.read + `"`
		if test.write != "" {
			script = "echo from " + test.from + " > /exchange/" + test.write + "; " + script
		}
		w.says(test.want, "exec", "together", "-c", test.from, "--", "sh", "-c", script)
	}
	last := deletePod(w, "together")
	if got := end(t, last.Status.ContainerStatuses, "second").Message; got != "the first has ended" {
		t.Errorf("the second container's preStop hook read %q from the first one, want its last words", got)
	}
}
