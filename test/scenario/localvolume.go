package scenario

import (
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

const kept = `
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: kept}, spec: {accessModes: [ReadWriteOnce],
  resources: {requests: {storage: 1Gi}}}}
`

const writer = kept + `---
{apiVersion: v1, kind: Pod, metadata: {name: writer}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: keelson.dev/hello:1, volumeMounts: [{name: d, mountPath: /data}]}],
  volumes: [{name: d, persistentVolumeClaim: {claimName: kept}}]}}
`

// LocalVolume lets a Pod write to a claim of the default class, and the next Pod read it; the volume is deleted
// with the claim.
//
// SET-002 SET-054
func LocalVolume(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	run := func() {
		w.KubectlWith(writer, "apply", "-f", "-")
		w.Kubectl("wait", "pod", "writer", "--for=condition=Ready", "--timeout=60s")
	}
	run()
	w.Kubectl("exec", "writer", "--", "sh", "-c", "echo precious > /data/file")
	volume := "pv/" + w.Kubectl("get", "pvc", "kept", "--output=jsonpath={.spec.volumeName}")
	w.Kubectl("delete", "pod", "writer")
	run()
	w.says("precious", "exec", "writer", "--", "cat", "/data/file")
	w.Kubectl("delete", "pod/writer", "pvc/kept")
	w.Kubectl("wait", volume, "--for=delete", "--timeout=60s")
}

const scratch = `
{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: keelson.dev/hello:1, volumeMounts: [{name: scratch, mountPath: /scratch}]}],
  volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {metadata: {labels: {kind: scratch}}, spec: {
    accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}}}]}}
`

// EphemeralVolume gives a Pod a claim of its own, which is deleted with the Pod, and the volume with the claim. If
// another claim has the name of a Pod's claim, the Pod waits, and says why, until that claim is gone.
func EphemeralVolume(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(strings.Replace(scratch, "NAME", "user", 1), "apply", "-f", "-")
	w.Kubectl("wait", "pod", "user", "--for=condition=Ready", "--timeout=60s")
	w.prints("pvc/user-scratch", "{.metadata.ownerReferences[*].name} {.metadata.labels.kind} {.status.phase}",
		"user scratch Bound")
	volume := "pv/" + w.Kubectl("get", "pvc", "user-scratch", "--output=jsonpath={.spec.volumeName}")

	w.KubectlWith(strings.NewReplacer("kept", "late-scratch").Replace(kept), "apply", "-f", "-")
	w.KubectlWith(strings.Replace(scratch, "NAME", "late", 1), "apply", "-f", "-")
	w.Await("the Pod to say that the claim is not its own", func() Answer {
		if text := w.Kubectl("describe", "pod", "late"); strings.Count(text, "pod is not owner") < 2 {
			return Saw(text) // by the controller, and by the scheduler
		}
		return ""
	})
	w.Kubectl("delete", "pvc", "late-scratch")
	w.Kubectl("wait", "pod", "late", "--for=condition=Ready", "--timeout=60s")

	w.Kubectl("delete", "pod", "user", "late")
	w.Kubectl("wait", "pvc/user-scratch", "pvc/late-scratch", volume, "--for=delete", "--timeout=60s")
}

// StatefulSetDataPersistence lets each Pod of a StatefulSet write its name into its claim. After a rollout, and
// after scaling down and up, each Pod finds the data that the Pod of its name wrote.
//
// POD-012 SET-002 SET-054
func StatefulSetDataPersistence(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(strings.Replace(stateful(3, HelloV1, `  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`), "        image:", "        volumeMounts: [{name: data, mountPath: /data}]\n        image:", 1), "apply", "-f", "-")
	w.awaitStatefulSet(3, 3)
	pods := []string{"web-0", "web-1", "web-2"}
	for _, pod := range pods {
		w.Kubectl("exec", pod, "--", "sh", "-c", "echo "+pod+" > /data/name")
	}
	expect := func(when string) {
		t.Helper()
		for _, pod := range pods {
			if got := w.Kubectl("exec", pod, "--", "cat", "/data/name"); got != pod+"\n" {
				t.Errorf("%s: %s finds %q", when, pod, got)
			}
		}
	}
	w.Kubectl("set", "image", "statefulset/web", "web="+HelloV2)
	w.awaitStatefulSet(3, 3)
	expect("after a rollout")
	w.Kubectl("scale", "statefulset", "web", "--replicas=1")
	w.awaitStatefulSet(1, 1)
	w.says("3", "get", "pvc", "--output=go-template={{len .items}}")
	w.Kubectl("scale", "statefulset", "web", "--replicas=3")
	w.awaitStatefulSet(3, 3)
	expect("after scaling down and up")
}
