package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// claimants are a template of claims, two Pods that get a claim of it each, and one that names a claim.
const claimants = `apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec:
  metadata: {labels: {of: template}}
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: trainer}
spec:
  replicas: 2
  selector: {matchLabels: {app: trainer}}
  template:
    metadata: {labels: {app: trainer}}
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
      containers: [{name: main, image: ` + Server + `, resources: {claims: [{name: gpu}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: sharer, labels: {app: sharer}}
spec:
  resourceClaims: [{name: fabric, resourceClaimName: fabric}]
  containers: [{name: main, image: ` + Server + `, resources: {claims: [{name: fabric}]}}]
`

const fabric = `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: fabric}
spec: {devices: {requests: [{name: port, exactly: {deviceClassName: fabric.example.com}}]}}
`

// UnallocatedResourceClaims makes Pods that claim devices: each gets the claims that it asks for by a template,
// waits and says what for, and never runs, not even when a user gives its claim a device; a claim is taken from a
// Pod that is gone, and is deleted with the Pod for which it was made.
func UnallocatedResourceClaims(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(claimants, "apply", "-f", "-")
	w.awaitOutput([]string{"FailedScheduling", "ResourceClaim fabric does not exist"}, "describe", "pod", "sharer")
	w.KubectlWith(fabric, "apply", "-f", "-")
	w.awaitOutput([]string{"ResourceClaim fabric is not allocated, and nobody in this cluster allocates devices"},
		"describe", "pod", "sharer")

	w.Await("each Pod's claim of the template", func() Answer {
		names := map[string]bool{}
		for _, pod := range w.Pods("app=trainer") {
			for _, said := range pod.Status.ResourceClaimStatuses {
				if name := said.ResourceClaimName; name != nil && strings.HasPrefix(*name, pod.Name+"-gpu-") {
					names[*name] = true
				}
			}
		}
		claims := strings.Fields(w.Kubectl("get", "resourceclaims", "-l", "of=template", "-o", "name"))
		if len(names) != 2 || len(claims) != 2 {
			return Sawf("the Pods name %v, there are %q", names, claims)
		}
		return ""
	})
	w.awaitOutput([]string{"the Pod's ResourceClaim for gpu is not allocated"}, "get", "events")

	w.Kubectl("patch", "resourceclaim", "fabric", "--subresource=status", "--type=merge", "-p", `{"status": {
		"allocation": {"devices": {"results": [
			{"request": "port", "driver": "fabric.example.com", "pool": "fabric", "device": "port-0"}]}},
		"reservedFor": [{"resource": "pods", "name": "sharer", "uid": "`+string(w.pod("sharer").UID)+`"}]}}`)
	w.awaitOutput([]string{"fabric", "allocated,reserved"}, "get", "resourceclaims", "fabric")
	w.awaitOutput([]string{"no node of this cluster prepares the devices"}, "describe", "pod", "sharer")
	for _, pod := range w.Pods("app in (sharer, trainer)") {
		if pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending || len(pod.Status.ContainerStatuses) > 0 {
			t.Errorf("Pod %s is %s on node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
	}

	w.Kubectl("delete", "pod", "sharer")
	w.Await("the claim of the Pod that is gone to be for nobody", func() Answer {
		return Left(w.Kubectl("get", "resourceclaim", "fabric", "-o", "jsonpath={.status.reservedFor}"))
	})
	w.Kubectl("delete", "deployment", "trainer")
	w.Await("the claims of the Pods that are gone to be gone", func() Answer {
		return Left(w.Kubectl("get", "resourceclaims", "-l", "of=template", "-o", "name"))
	})
}
