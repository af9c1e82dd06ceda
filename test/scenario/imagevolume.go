package scenario

import (
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// imaged is a Pod with another image as a volume, as a whole and in part.
const imaged = `apiVersion: v1
kind: Pod
metadata: {name: imaged}
spec:
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  containers:
  - name: c
    image: ` + Server + `
    volumeMounts:
    - {name: content, mountPath: /content}
    - {name: content, mountPath: /accounts, subPath: etc}
  volumes:
  - {name: content, image: {reference: "REFERENCE", pullPolicy: Never}}
`

// ImageVolume shows a container the files of another image, which it cannot change, and a Pod whose volume is an image
// that is not there waits as if it were its own.
func ImageVolume(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(strings.Replace(imaged, "REFERENCE", HelloV2, 1), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/imaged", "--timeout=60s")
	if got := w.Kubectl("exec", "imaged", "--", "ls", "/content/bin"); !strings.Contains(got, "testserver\n") {
		t.Errorf("the image holds %q", got)
	}
	w.says("group\npasswd", "exec", "imaged", "--", "ls", "/accounts")
	w.refuses("", []string{"read-only file system"}, "exec", "imaged", "--", "touch", "/content/new")
	w.prints("pod/imaged", "{.status.containerStatuses[0].volumeMounts[*].name}", "content content")
	got := w.Kubectl("get", "pod", "imaged", "--output=jsonpath="+
		"{.status.containerStatuses[0].volumeMounts[0].volumeStatus.image.imageRef}")
	if !strings.HasPrefix(got, "sha256:") {
		t.Errorf("its status names the image %q", got)
	}
	w.Kubectl("delete", "pod", "imaged")

	w.KubectlWith(strings.Replace(imaged, "REFERENCE", "keelson.dev/nowhere:1", 1), "apply", "-f", "-")
	w.prints("pod/imaged", "{.status.containerStatuses[0].state.waiting.reason}", "ErrImageNeverPull")
	w.awaitOutput([]string{`container image "keelson.dev/nowhere:1" is not present with pull policy of Never`},
		"describe", "pod", "imaged")
	w.Kubectl("delete", "pod", "imaged")
}
