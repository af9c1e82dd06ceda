package scenario

import (
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// holder is a Pod that uses the claim of everyOther, which gets a volume by that.
const holder = `---
apiVersion: v1
kind: Pod
metadata: {name: holder}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: "` + Server + `", volumeMounts: [{name: d, mountPath: /d}]}]
  volumes: [{name: d, persistentVolumeClaim: {claimName: every}}]
`

// KubectlWait has kubectl wait for each condition that objects get, for values, for objects to come and to go.
func KubectlWait(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	coming := w.kubectl("wait", "pod/every", "--for=create", "--timeout=90s")
	var said strings.Builder
	coming.Stdout = &said
	if err := coming.Start(); err != nil {
		t.Fatal(err)
	}
	w.KubectlWith(everyWorkload+everyOther+holder, "apply", "-f", "-")
	if err := coming.Wait(); err != nil || said.String() != "pod/every condition met\n" {
		t.Errorf("wait for a Pod to be made: %v, %q", err, said.String())
	}
	w.KubectlWith(job("done", "exit 0")+job("failed", "exit 1", "backoffLimit: 0")+
		job("held", "", "suspend: true"), "apply", "-f", "-")
	node := m.Nodes()[0]
	for _, row := range [][2]string{
		{"pod/every", "condition=PodScheduled"}, {"pod/every", "condition=PodReadyToStartContainers"},
		{"pod/every", "condition=Initialized"}, {"pod/every", "condition=ContainersReady"},
		{"pod/every", "condition=Ready"}, {"deployment/every", "condition=Available"},
		{"deployment/every", "condition=Progressing"}, {"job/done", "condition=SuccessCriteriaMet"},
		{"job/done", "condition=Complete"}, {"job/failed", "condition=FailureTarget"},
		{"job/failed", "condition=Failed"}, {"job/held", "condition=Suspended"},
		{"hpa/every", "condition=AbleToScale"}, {"hpa/every", "condition=ScalingActive=False"},
		{"pdb/every", "jsonpath={.status.expectedPods}=1"}, {"node/" + node, "condition=Ready"},
		{"node/" + node, "condition=DiskPressure=false"},
		{"namespace/" + w.Namespace, "jsonpath={.status.phase}=Active"},
		{"pvc/every", "jsonpath={.status.phase}=Bound"}, {"statefulset/every", "jsonpath={.status.readyReplicas}=1"},
		{"replicaset/every", "jsonpath={.status.availableReplicas}=1"},
		{"rc/every", "jsonpath={.status.readyReplicas}=1"},
		{"daemonset/every", "jsonpath={.status.numberAvailable}"}, {"job/every", "jsonpath={.status.ready}=1"},
		{"service/every", "jsonpath={.spec.clusterIP}"}, {"quota/every", "jsonpath={.status.used.pods}"},
	} {
		name := strings.NewReplacer(
			"hpa/",
			"horizontalpodautoscaler.autoscaling/",
			"pdb/",
			"poddisruptionbudget.policy/",
			"pvc/",
			"persistentvolumeclaim/",
			"rc/",
			"replicationcontroller/",
			"quota/",
			"resourcequota/",
			"job/",
			"job.batch/",
			"deployment/",
			"deployment.apps/",
			"statefulset/",
			"statefulset.apps/",
			"replicaset/",
			"replicaset.apps/",
			"daemonset/",
			"daemonset.apps/",
		).Replace(
			row[0],
		)
		w.says(name+" condition met", "wait", row[0], "--for="+row[1], "--timeout=90s")
	}
	w.refuses("", []string{"timed out waiting for the condition on pods/every"}, "wait", "pod/every",
		"--for=condition=Ready=false", "--timeout=1s")
	w.refuses("", []string{"no matching resources found"}, "wait", "pods", "-l", "of=nobody", "--for=condition=Ready")
	w.refuses("", []string{`pods "nobody" not found`}, "wait", "pod/nobody", "--for=condition=Ready")
	w.says("", "wait", "pod/nobody", "--for=delete", "--timeout=1s")
	w.Kubectl("delete", "pod", "every", "--wait=false")
	w.Kubectl("wait", "pod/every", "--for=delete", "--timeout=90s")
	w.refuses("", []string{"NotFound"}, "get", "pod", "every")
}
