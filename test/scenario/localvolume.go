package scenario

import (
	"testing"

	"keelson.dev/test/mesh"
)

const writer = `
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: kept}, spec: {accessModes: [ReadWriteOnce],
  resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: writer}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: keelson.dev/hello:1, volumeMounts: [{name: d, mountPath: /data}]}],
  volumes: [{name: d, persistentVolumeClaim: {claimName: kept}}]}}
`

// LocalVolume lets a Pod write to a claim of the default class, and the next Pod read it; the volume goes with the
// claim.
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
