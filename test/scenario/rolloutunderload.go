package scenario

import (
	"maps"
	"slices"
	"testing"

	"keelson.dev/test/mesh"
)

// updated is a Deployment behind a Service whose Pods leave without haste: they are ready once they answer, and go on
// for longer after they were told to end than the nodes of a busy machine take to hear of it.
const updated = `apiVersion: v1
kind: Service
metadata: {name: shop}
spec:
  selector: {app: shop}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 60
      containers:
      - name: main
        image: ` + HelloV1 + `
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 25}}}
`

// RolloutUnderLoad updates a Deployment while clients in Pods and on nodes ask its Service without a pause. No request
// is lost, and in the end all are answered by the new version.
//
// DEP-234
func RolloutUnderLoad(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(updated, "apply", "-f", "-")
	all := w.traffic().startClients()
	w.AwaitAvailable("shop", 4)
	w.traffic().awaitAnswers(all, []string{"1"}, "http://shop/version")
	old := slices.Collect(maps.Keys(w.traffic().addresses("app=shop")))
	ends := map[string]func() answers{}
	for _, name := range all {
		ends[name] = w.traffic().startLoad(name, "-w", "10", "http://shop/version")
	}
	w.Kubectl("set", "image", "deployment/shop", "main="+HelloV2)
	w.AwaitAvailable("shop", 4)
	w.awaitGone("pods", old...)
	for name, end := range ends {
		a := end()
		if len(a.failed) > 0 || !slices.Equal(a.from(), []string{"1", "2"}) {
			t.Errorf("%s: %v, want no failure, and answers of both versions", name, a)
		}
		t.Logf("%s: %v", name, a)
	}
	w.traffic().awaitAnswers(all, []string{"2"}, "-n", enough, "http://shop/version")
}
