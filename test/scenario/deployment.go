package scenario

import (
	"fmt"
	"strings"
)

// web is the Deployment that most scenarios use.
func web(replicas int, image, extra string) string {
	manifest := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: %d
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: %s
`, replicas, image)
	if extra == "" {
		return manifest
	}
	return strings.Replace(manifest, "spec:\n", "spec:\n"+extra, 1)
}

// Deploy brings the world's Deployment to that size and image and waits until it has exactly these Pods; no image
// deletes it and waits until nothing of it is left.
func (w *World) Deploy(replicas int32, image string) {
	w.Helper()
	w.Await("kubectl to be heard", func() Answer { return Left(w.TryDeploy(replicas, image)) })
	if image == "" {
		w.awaitNothing("deployments", "replicasets", "pods")
		return
	}
	w.AwaitAvailable("web", replicas)
	expectImages(w, image)
	w.Await("exactly the Pods asked for", func() Answer {
		if pods := w.Pods("app=web"); len(pods) != int(replicas) {
			return Sawf("%d Pods", len(pods))
		}
		return ""
	})
}

// TryDeploy asks once and returns what kubectl complained of.
func (w *World) TryDeploy(replicas int32, image string) string {
	w.Helper()
	if image == "" {
		return w.TryKubectl("", "delete", "deployment", "web", "--ignore-not-found", "--wait=false").Complaint()
	}
	return w.TryKubectl(web(int(replicas), image, ""), "apply", "-f", "-").Complaint()
}
