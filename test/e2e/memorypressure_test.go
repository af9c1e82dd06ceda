package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// eater is a Pod of a priority class that requests that much memory, and has no limit.
const eater = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 300
  priorityClassName: "%[2]s"
  containers:
  - name: main
    image: ` + scenario.Server + `
    resources: {requests: {memory: %[3]s}}
`

// resting is a Pod that requests nothing and that only the node is asked about.
const resting = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  nodeName: %[2]s
  containers: [{name: main, image: ` + scenario.Server + `}]
`

// TestMemoryPressureEviction has a Pod take more and more of a node's memory, of which all Pods together have 600 MiB:
// it is evicted before the kernel kills a process. Who keeps to its request stays, also of the lowest priority, and
// nothing of the class BestEffort comes meanwhile.
// SAF-070, SCH-069
func TestMemoryPressureEviction(t *testing.T) {
	m := processes.New(t, 1)
	w := scenario.In(t, m)
	m.Restart(t, mesh.NodeAgent, "--eviction-hard=memory.available<200Mi",
		"--eviction-pressure-transition-period=20s",
		fmt.Sprintf("--system-reserved=memory=%d", machineMemory(t)-600<<20))
	node := m.Nodes()[0]
	w.Await("what is allocatable", func() scenario.Answer {
		n, err := w.Client.CoreV1().Nodes().Get(w.Context(), node, metav1.GetOptions{})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		if got := n.Status.Allocatable.Memory().Value(); got != 400<<20 {
			return scenario.Sawf("%d bytes", got)
		}
		return ""
	})
	w.KubectlWith(lowClass, "apply", "-f", "-")
	for _, row := range [][]any{{"neighbour", "", "128Mi"}, {"keeps-to-it", "low", "128Mi"}, {"hog", "", "16Mi"}} {
		w.KubectlWith(fmt.Sprintf(eater, row...), "apply", "-f", "-")
	}
	w.Kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s")
	takes(w, "neighbour", 40)
	takes(w, "keeps-to-it", 40)
	for range 5 {
		takes(w, "hog", 70)
	}
	w.Await("the hog to be evicted", func() scenario.Answer {
		return evicted(w, "hog", "The node was low on resource: memory. Threshold quantity: 200Mi, ", true)
	})
	w.KubectlWith(fmt.Sprintf(resting, "late", node), "apply", "-f", "-")
	w.Await("a Pod of the class BestEffort to be refused", func() scenario.Answer {
		return evicted(w, "late", "Pod was rejected: The node had condition: [MemoryPressure]. ", false)
	})
	w.Await("the node to be well again", func() scenario.Answer { return shortOfMemory(w, node) })
	for name, want := range map[string]corev1.PodPhase{"neighbour": corev1.PodRunning, "keeps-to-it": corev1.PodRunning,
		"hog": corev1.PodFailed} {
		pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		main := pod.Status.ContainerStatuses[0]
		killed := main.State.Terminated != nil && main.State.Terminated.Reason == "OOMKilled" ||
			main.LastTerminationState.Terminated != nil
		if pod.Status.Phase != want || main.RestartCount != 0 || killed {
			t.Errorf("the Pod %s is %s, its container %+v", name, pod.Status.Phase, main)
		}
	}
	w.KubectlWith(fmt.Sprintf(resting, "later", node), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod", "later", "--timeout=90s")
}

// machineMemory is how much memory the machine has, in bytes.
func machineMemory(t *testing.T) int64 {
	t.Helper()
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(info))
	at := slices.Index(fields, "MemTotal:")
	kib, err := strconv.ParseInt(fields[at+1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// takes has a Pod take so many MiB more, for as long as it runs.
func takes(w *scenario.World, pod string, mib int) {
	w.Helper()
	err := w.Client.CoreV1().RESTClient().Post().Namespace(w.Namespace).Resource("pods").Name(pod+":8080").
		SubResource("proxy").Suffix("allocate").Param("mib", strconv.Itoa(mib)).Do(w.Context()).Error()
	if err != nil {
		w.Fatalf("having Pod %s take %d MiB: %v", pod, mib, err)
	}
}

// shortOfMemory says how a node is short of memory.
func shortOfMemory(w *scenario.World, name string) scenario.Answer {
	node, err := w.Client.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		return scenario.Saw(err.Error())
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeMemoryPressure && c.Status != corev1.ConditionFalse {
			return scenario.Sawf("the condition is %s", c.Status)
		}
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeMemoryPressure {
			return "it is tainted"
		}
	}
	return ""
}
