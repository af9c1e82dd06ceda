package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// peers are a StatefulSet, an indexed Job and a DaemonSet, whose Pods answer with their names, and headless Services
// that give the Pods names.
const peers = `apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: ` + Server + `
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: ring}
spec: {clusterIP: None, selector: {job-name: ring}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: ring}
spec:
  completionMode: Indexed
  completions: 3
  parallelism: 3
  template:
    spec:
      subdomain: ring
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: ` + Server + `
        command:
        - sh
        - -c
        - |
          testserver serve &
          for i in 0 1 2; do
            until wget -q -T 5 -O- http://ring-$i.ring:8080/hostname; do sleep 1; done
          done
          sleep 5
---
apiVersion: v1
kind: Service
metadata: {name: daemons}
spec:
  selector: {app: daemons}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: every-daemon}
spec: {clusterIP: None, selector: {app: daemons}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: daemons}
spec:
  selector: {matchLabels: {app: daemons}}
  template:
    metadata: {labels: {app: daemons}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: ` + Server + `
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`

// PodToPodTraffic lets the Pods of a StatefulSet and of an indexed Job find each other by name, and reaches the Pods of
// a DaemonSet together and one by one.
func PodToPodTraffic(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(peers, "apply", "-f", "-")
	t.Run("statefulset", func(t *testing.T) { expectStatefulSetPeers(w.on(t)) })
	t.Run("daemonset", func(t *testing.T) { expectDaemonSetPods(w.on(t)) })
	t.Run("job", func(t *testing.T) { expectIndexedJobPeers(w.on(t)) })
}

// expectStatefulSetPeers asks every Pod from every Pod, by its name below the governing Service's.
//
// SET-044
func expectStatefulSetPeers(w *World) {
	w.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
	set := clients{"db-0", "db-1", "db-2"}
	for _, name := range set {
		w.traffic().awaitAnswers(set, []string{name}, "-n", "2", "http://"+name+".db:8080/hostname")
	}
}

// expectDaemonSetPods reaches a Pod of any node by the Service, and knows all Pods by the headless one.
//
// SET-150 SET-151
func expectDaemonSetPods(w *World) {
	w.Kubectl("rollout", "status", "daemonset/daemons", "--timeout=60s")
	pods := w.traffic().addresses("app=daemons")
	if len(pods) != len(w.Mesh.Nodes()) {
		w.Fatalf("%d Pods on %d nodes", len(pods), len(w.Mesh.Nodes()))
	}
	names := slices.Sorted(maps.Keys(pods))
	for _, pod := range names {
		w.traffic().awaitLookup(pod, "A", "every-daemon", slices.Collect(maps.Values(pods))...)
	}
	w.traffic().awaitAnswers(names, names, "-n", enough, "http://daemons/hostname")
}

// expectIndexedJobPeers waits for a Job whose Pods end once each has had an answer of all by their host names.
//
// JOB-137
func expectIndexedJobPeers(w *World) {
	w.Kubectl("wait", "--for=condition=Complete", "job/ring", "--timeout=60s")
	for _, pod := range w.Pods("job-name=ring") {
		out := strings.Fields(w.Kubectl("logs", pod.Name))
		for i := range 3 {
			if name := fmt.Sprintf("ring-%d", i); !slices.Contains(out, name) {
				w.Errorf("%s was not answered by %s: %v", pod.Name, name, out)
			}
		}
	}
}
