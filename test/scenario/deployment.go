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
