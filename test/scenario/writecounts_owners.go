package scenario

import (
	"testing"

	"keelson.dev/test/mesh"
)

// written is what the life of an owner, and of what it makes, may write at most: by resource, while it begins and while
// it goes. Of Pods it is written exactly so often.
type written struct {
	name, manifest string
	begin, end     map[string]int
}

var ownersWrite = []written{
	{"DaemonSet of three Pods", `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: keelson.dev/hello:1}]}
`,
		map[string]int{"pods": 9, "daemonsets.apps": 6, "controllerrevisions.apps": 1, "events": 6},
		map[string]int{"pods": 6, "daemonsets.apps": 1, "controllerrevisions.apps": 1, "events": 0}},
	{"StatefulSet of two Pods", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: data}
spec:
  replicas: 2
  serviceName: data
  selector: {matchLabels: {app: data}}
  template:
    metadata: {labels: {app: data}}
    spec: {containers: [{name: main, image: keelson.dev/hello:1}]}
`,
		map[string]int{"pods": 6, "statefulsets.apps": 4, "controllerrevisions.apps": 1, "events": 4},
		map[string]int{"pods": 4, "statefulsets.apps": 1, "controllerrevisions.apps": 1, "events": 0}},
	{"ReplicationController of one Pod", `
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  replicas: 1
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: main, image: keelson.dev/hello:1}]}
`,
		map[string]int{"pods": 3, "replicationcontrollers": 4, "events": 2},
		map[string]int{"pods": 2, "replicationcontrollers": 1, "events": 0}},
	{"Job of one Pod", `
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: keelson.dev/hello:1, command: [exit 0]}]}
`,
		map[string]int{"pods": 5, "jobs.batch": 6, "events": 3},
		map[string]int{"pods": 1, "jobs.batch": 1, "events": 0}},
	{"Service, budget and quota of one Pod, its controller last", `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few}
spec: {hard: {pods: "5"}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: web}
spec:
  replicas: 1
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: keelson.dev/hello:1}]}
`,
		map[string]int{"pods": 3, "endpointslices.discovery.k8s.io": 3, "endpoints": 3,
			"poddisruptionbudgets.policy": 4, "resourcequotas": 3},
		map[string]int{"pods": 2, "endpointslices.discovery.k8s.io": 2, "endpoints": 2,
			"poddisruptionbudgets.policy": 3, "resourcequotas": 2}},
}

// WorkloadWriteCounts counts what the kinds of workload write, and what follows their Pods, as
// docs/explanation/writes.md says it.
func WorkloadWriteCounts(t *testing.T, m mesh.Mesh) {
	for _, owner := range ownersWrite {
		t.Run(owner.name, func(t *testing.T) {
			w := In(t, m)
			var resources []string
			for resource := range owner.begin {
				resources = append(resources, resource)
			}
			journal := watchWrites(w, resources...)
			w.KubectlWith(owner.manifest, "apply", "-f", "-")
			journal.expect(w, "the begin", owner.begin)
			w.KubectlWith(owner.manifest, "delete", "-f", "-")
			w.awaitNothing("pods")
			journal.expect(w, "the end", owner.end)
		})
	}
}
