package scenario

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// volumes are two that people made.
const volumes = `
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS-large}, spec: {capacity: {storage: 10Gi},
  accessModes: [ReadWriteOnce], storageClassName: NS, hostPath: {path: /tmp/NS-large}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS-small}, spec: {capacity: {storage: 5Gi},
  accessModes: [ReadWriteOnce], storageClassName: NS, hostPath: {path: /tmp/NS-small}}}
`

// claims are one that the smaller volume suffices for, and one of the default class.
const claims = `
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce],
  storageClassName: NS, resources: {requests: {storage: 4Gi}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: scratch}, spec: {accessModes: [ReadWriteOnce],
  resources: {requests: {storage: 1Gi}}}}
`

// claimant is a Pod that uses the first claim.
const claimant = `
{apiVersion: v1, kind: Pod, metadata: {name: user}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: keelson.dev/hello:1, volumeMounts: [{name: d, mountPath: /data}]}],
  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}}
`

// PersistentVolumeBinding gives a claim the smallest volume that suffices, keeps the claim while a Pod uses it and the
// volume after that, and makes a volume of the default class on the node that is chosen.
//
// SET-018 SET-024 SET-053 SET-055 SET-101
func PersistentVolumeBinding(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	t.Cleanup(func() {
		for _, name := range []string{"-large", "-small"} {
			_ = w.Client.CoreV1().PersistentVolumes().Delete(context.Background(), w.Namespace+name,
				metav1.DeleteOptions{})
		}
	})
	w.KubectlWith(strings.ReplaceAll(volumes, "NS", w.Namespace), "apply", "-f", "-")
	small, large := "pv/"+w.Namespace+"-small", "pv/"+w.Namespace+"-large"
	// A claim that is seen before the volumes are gets the first that comes.
	w.prints(small, "{.status.phase}", "Available")
	w.prints(large, "{.status.phase}", "Available")
	w.KubectlWith(strings.ReplaceAll(claims, "NS", w.Namespace), "apply", "-f", "-")
	w.prints("pvc/data", "{.status.phase} {.spec.volumeName} {.status.capacity.storage}", "Bound "+w.Namespace+
		"-small 5Gi")
	w.prints(small, "{.status.phase} {.spec.claimRef.name}", "Bound data")
	w.prints(large, "{.status.phase}", "Available")

	w.KubectlWith(claimant, "apply", "-f", "-")
	w.Kubectl("wait", "pod", "user", "--for=condition=Ready", "--timeout=60s")
	w.Kubectl("delete", "pvc", "data", "--wait=false")
	w.Await("a claim that is on its way out", func() Answer {
		if text := w.Kubectl("describe", "pvc", "data"); !strings.Contains(text, "Terminating") ||
			!strings.Contains(text, "user") {
			return Saw(text)
		}
		return ""
	})
	w.prints(small, "{.status.phase}", "Bound")
	w.Kubectl("delete", "pod", "user")
	w.Kubectl("wait", "pvc", "data", "--for=delete", "--timeout=60s")
	w.prints(small, "{.status.phase} {.spec.claimRef.name}", "Released data")

	w.prints("pvc/scratch", "{.status.phase} {.spec.storageClassName}", "Pending keelson-local")
	w.Await("the claim to say what it waits for", func() Answer {
		if text := w.Kubectl("describe", "pvc", "scratch"); !strings.Contains(text, "WaitForFirstConsumer") {
			return Saw(text)
		}
		return ""
	})
	node := strings.Fields(w.Kubectl("get", "nodes", "--output=jsonpath={.items[*].metadata.name}"))[0]
	w.Kubectl("annotate", "pvc", "scratch", "volume.kubernetes.io/selected-node="+node)
	w.Kubectl("wait", "pvc", "scratch", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
	made := "pv/" + w.Kubectl("get", "pvc", "scratch", "--output=jsonpath={.spec.volumeName}")
	w.prints(made, "{.status.phase} {.spec.csi.driver} {.metadata.labels.local\\.keelson\\.dev/node}",
		"Bound local.keelson.dev "+node)
	w.Kubectl("delete", "pvc", "scratch")
	w.Kubectl("wait", made, "--for=delete", "--timeout=60s")
}
