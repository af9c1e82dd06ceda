package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// writer is a Pod of a priority class that keeps a volume, requests that much of the disk, and has long to end.
const writer = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 300
  priorityClassName: "%[2]s"
  containers:
  - name: main
    image: ` + scenario.Server + `
    resources: {requests: {ephemeral-storage: %[3]s}, limits: {ephemeral-storage: %[4]s}}
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  volumes: [{name: scratch, emptyDir: {}}]
`

// TestDiskPressureEviction fills the disk of a node, whose Pods lie on a small file system of their own, until its
// agent evicts who uses more than requested: not the smaller writer of the lowest priority, which keeps to its request,
// nor the critical one, which does not. While the node is short of disk it is tainted, and takes in only critical
// Pods. SAF-070, SAF-084, SAF-090, SCH-002, SCH-068, SCH-069
func TestDiskPressureEviction(t *testing.T) {
	m := processes.New(t, 1)
	w := scenario.In(t, m)
	dir := nodeDisk(t, m, 64<<20)
	m.Restart(t, mesh.NodeAgent, "--root-dir="+dir, "--eviction-hard=nodefs.available<16Mi,imagefs.available<0%",
		"--eviction-pressure-transition-period=20s", "--system-reserved=cpu=100m,memory=100Mi,pid=100",
		"--kube-reserved=ephemeral-storage=8Mi")
	node := m.Nodes()[0]
	w.Await("what is allocatable", func() scenario.Answer { return allocatableAsReserved(w, node) })

	w.KubectlWith(lowClass, "apply", "-f", "-")
	for _, row := range [][]any{{"keeps-to-it", "low", "16Mi", "40Mi"}, {"goes-beyond", "", "1Mi", "40Mi"},
		{"at-its-limit", "", "1Mi", "2Mi"}, {"critical", "system-node-critical", "1Mi", "40Mi"}} {
		w.KubectlWith(fmt.Sprintf(writer, row...), "apply", "-f", "-")
	}
	w.Kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s")

	fill(t, w, "at-its-limit", 3<<20)
	w.Await("the Pod beyond its limit to be evicted", func() scenario.Answer {
		return evicted(w, "at-its-limit",
			"Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ", false)
	})
	fill(t, w, "keeps-to-it", 12<<20)
	fill(t, w, "critical", 8<<20)
	fill(t, w, "goes-beyond", 34<<20)
	w.Await("the node to be tainted", func() scenario.Answer { return pressed(w, node, true) })
	w.Await("the Pod beyond its request to be evicted", func() scenario.Answer {
		return evicted(w, "goes-beyond", "The node was low on resource: ephemeral-storage. Threshold quantity: 16Mi, ",
			true)
	})
	w.KubectlWith(fmt.Sprintf(late, node), "apply", "-f", "-")
	w.Await("a Pod that comes now to be refused", func() scenario.Answer {
		return evicted(w, "late", "Pod was rejected: The node had condition: [DiskPressure]. ", false)
	})
	if events := w.Kubectl("get", "events", "--namespace", "default", "--field-selector",
		"involvedObject.kind=Node", "-o", "jsonpath={.items[*].reason}"); !strings.Contains(events,
		"EvictionThresholdMet") || !strings.Contains(events, "NodeHasDiskPressure") {
		t.Errorf("events about the node are %q", events)
	}
	w.Await("the node to be well again", func() scenario.Answer { return pressed(w, node, false) })
	for name, why := range map[string]string{"keeps-to-it": "SCH-069: within its request", "critical": "critical"} {
		pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), name, metav1.GetOptions{})
		if err != nil || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("the Pod %s (%s) is %s, error %v", name, why, pod.Status.Phase, err)
		}
	}
}

// late is a Pod that only the node is asked about.
const late = `apiVersion: v1
kind: Pod
metadata: {name: late}
spec:
  nodeName: %s
  tolerations: [{operator: Exists}]
  containers:
  - name: main
    image: ` + scenario.Server + `
    resources: {requests: {cpu: 1m}}
`

const lowClass = `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: -1000
`

// nodeDisk mounts a file system of the size for the Pods of the mesh's node.
func nodeDisk(t *testing.T, m *processes.Mesh, size int) string {
	t.Helper()
	dir := filepath.Join(m.DataDir, "small")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := m.OnNode(m.Nodes()[0], func() error {
		return unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size))
	}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fill writes a file into a Pod's volume.
func fill(t *testing.T, w *scenario.World, pod string, size int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Kubectl("cp", file, w.Namespace+"/"+pod+":/scratch/file")
}

// evicted says what a Pod lacks of having been evicted for the reason, for the node's sake or for its own.
func evicted(w *scenario.World, name, message string, disrupted bool) scenario.Answer {
	pod, err := w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		return scenario.Saw(err.Error())
	}
	s := pod.Status
	if s.Phase != corev1.PodFailed || s.Reason != "Evicted" || !strings.HasPrefix(s.Message, message) {
		return scenario.Sawf("%s %s %s", s.Phase, s.Reason, s.Message)
	}
	for _, c := range s.Conditions {
		if c.Type == corev1.DisruptionTarget {
			if !disrupted || c.Status != corev1.ConditionTrue || c.Reason != "TerminationByKubelet" ||
				c.Message != s.Message {
				return scenario.Sawf("DisruptionTarget is %+v", c)
			}
			return ""
		}
	}
	if disrupted {
		return "there is no DisruptionTarget"
	}
	return ""
}

// pressed says what a node lacks of being short of disk, or of having been so.
func pressed(w *scenario.World, name string, want bool) scenario.Answer {
	node, err := w.Client.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		return scenario.Saw(err.Error())
	}
	is := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeDiskPressure && c.Status == corev1.ConditionTrue
	})
	tainted := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeDiskPressure && taint.Effect == corev1.TaintEffectNoSchedule
	})
	if is != want || tainted != want {
		return scenario.Sawf("pressure %v, tainted %v", is, tainted)
	}
	return ""
}

// allocatableAsReserved says what the Node's allocatable lacks of the capacity without what the test reserves.
func allocatableAsReserved(w *scenario.World, name string) scenario.Answer {
	node, err := w.Client.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		return scenario.Saw(err.Error())
	}
	has, may := node.Status.Capacity, node.Status.Allocatable
	cpu := has.Cpu().MilliValue() - may.Cpu().MilliValue()
	memory := has.Memory().Value() - may.Memory().Value()
	disk := has.StorageEphemeral().Value() - may.StorageEphemeral().Value()
	if cpu != 100 || memory != 200<<20 || disk != 24<<20 {
		return scenario.Sawf("%dm of CPU, %d bytes of memory and %d of disk are kept", cpu, memory, disk)
	}
	return ""
}
