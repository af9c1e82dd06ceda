package scenario

import (
	"fmt"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// HorizontalAutoscaling makes autoscalers as the documentation does. Where nothing measures the Pods, their use is
// unknown and a condition says so; nothing changes but what is outside of the bounds.
//
// DEP-099 DEP-100 DEP-185 DEP-186 DEP-210 DEP-211 DEP-212 DEP-241
func HorizontalAutoscaling(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(4, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 4)
	w.says("horizontalpodautoscaler.autoscaling/web autoscaled", "autoscale", "deployment/web", "--min=1", "--max=3",
		"--cpu=50%")
	awaitAutoscaler(w, "web Deployment/web cpu: <unknown>/50% 1 3 3")
	w.AwaitAvailable("web", 3)
	w.says("1 3 50", "get", "horizontalpodautoscalers.v1.autoscaling", "web", "-o",
		"jsonpath={.spec.minReplicas} {.spec.maxReplicas} {.spec.targetCPUUtilizationPercentage}")
	w.says("50", "get", "horizontalpodautoscalers.v2.autoscaling", "web", "-o",
		"jsonpath={.spec.metrics[0].resource.target.averageUtilization}")
	w.awaitOutput([]string{"Reference:", "Deployment/web", "Min replicas:", "1", "Max replicas:", "3",
		"ScalingActive  False   FailedGetResourceMetric  the HPA was unable to compute the replica count: failed to " +
			"get cpu utilization: ", "SuccessfulRescale", "New size: 3; reason: Current number of replicas above " +
			"Spec.MaxReplicas"}, "describe", "hpa", "web")
	w.Kubectl("delete", "hpa", "web")
	w.says("horizontalpodautoscaler.autoscaling/web autoscaled", "autoscale", "deployment/web", "--min=1", "--max=3")
	w.says("80", "get", "hpa", "web", "-o", "jsonpath={.spec.metrics[0].resource.target.averageUtilization}")
	w.Kubectl("delete", "hpa", "web")
	w.says("horizontalpodautoscaler.autoscaling/web autoscaled", "autoscale", "deployment/web", "--min=10", "--max=15",
		"--cpu-percent=80")
	w.says("10 15 80", "get", "horizontalpodautoscalers.v1.autoscaling", "web", "-o",
		"jsonpath={.spec.minReplicas} {.spec.maxReplicas} {.spec.targetCPUUtilizationPercentage}")
	w.Kubectl("delete", "hpa", "web")
	w.refuses("", []string{"spec.maxReplicas: Invalid value: 0: must be greater than 0"}, "create", "-f", w.directory(
		map[string]string{"hpa.yaml": strings.ReplaceAll(frontendScaler, "maxReplicas: 10", "maxReplicas: 0")})+
		"/hpa.yaml")
	w.KubectlWith(fmt.Sprintf(frontendSet, HelloV1), "apply", "-f", "-")
	w.KubectlWith(frontendScaler, "apply", "-f", "-")
	awaitAutoscaler(w, "frontend-scaler ReplicaSet/frontend cpu: <unknown>/50% 3 10 3")
	w.awaitActive("tier=frontend", 3)
}

const frontendSet = `apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: frontend}
spec:
  replicas: 1
  selector: {matchLabels: {tier: frontend}}
  template:
    metadata: {labels: {tier: frontend}}
    spec: {containers: [{name: main, image: %q}]}
`

const frontendScaler = `apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: frontend-scaler}
spec:
  scaleTargetRef: {kind: ReplicaSet, name: frontend}
  minReplicas: 3
  maxReplicas: 10
  targetCPUUtilizationPercentage: 50
`

// burning is a Deployment whose Pods use twice what they ask for, until the file /rest is there.
const burning = `apiVersion: apps/v1
kind: Deployment
metadata: {name: burner}
spec:
  selector: {matchLabels: {app: burner}}
  template:
    metadata: {labels: {app: burner}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: ` + Server + `
        command: [sh, -c, "while [ ! -e /rest ]; do true; done; sleep 1000"]
        resources: {requests: {cpu: 100m}, limits: {cpu: 200m}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: burner}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: burner}
  minReplicas: 1
  maxReplicas: 3
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
`

// HorizontalAutoscalingUnderLoad lets an autoscaler scale a Deployment up under real CPU load, and down when it is
// over. Nothing is added to the mesh.
//
// DEP-185 DEP-210 DEP-211
func HorizontalAutoscalingUnderLoad(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(burning, "apply", "-f", "-")
	w.AwaitAvailable("burner", 3)
	w.awaitOutput([]string{"ScalingActive   True    ValidMetricFound", "SuccessfulRescale",
		"New size: 3; reason: cpu resource utilization (percentage of request) above target"}, "describe", "hpa",
		"burner")
	for _, pod := range w.Pods("app=burner") {
		w.Kubectl("exec", pod.Name, "--", "sh", "-c", ": > /rest")
	}
	w.AwaitAvailable("burner", 1)
	w.awaitOutput([]string{"reason: All metrics below target"}, "describe", "hpa", "burner")
}

// awaitAutoscaler waits until kubectl shows the only autoscaler so, without its age.
func awaitAutoscaler(w *World, want string) {
	w.Helper()
	w.Await("the autoscaler as "+want, func() Answer {
		row := strings.Fields(w.Kubectl("get", "hpa", "--no-headers"))
		if len(row) < 2 || strings.Join(row[:len(row)-1], " ") != want {
			return Saw(strings.Join(row, " "))
		}
		return ""
	})
}
