package vm

import (
	"fmt"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/scenario"
)

// The drivers.
const (
	cgroupfs = "cgroupfs"
	systemd  = "systemd"
)

// ofEachClass has a Pod of each class; the Guaranteed one's limits are those that the test looks for.
const ofEachClass = `apiVersion: v1
kind: Pod
metadata: {name: guaranteed, labels: {app: limits}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ` + scenario.Server + `
    resources: {limits: {cpu: 300m, memory: 96Mi}}
  - name: beside
    image: ` + scenario.Server + `
    args: ["-http="]
    resources: {limits: {cpu: 200m, memory: 64Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: burstable, labels: {app: limits}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: "` + scenario.Server + `", resources: {requests: {cpu: 100m, memory: 32Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: best-effort, labels: {app: limits}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: "` + scenario.Server + `"}
`

// limits looks at what the kernel holds Pods to, in the files of cgroup version 2 and at their places under the driver;
// what they use is found there as well. (POD-228, POD-233, DEP-212)
func limits(t *testing.T, m *Mesh, driver string) {
	w := scenario.In(t, m)
	w.KubectlWith(ofEachClass, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pods", "-l", "app=limits", "--timeout=80s")
	pods := map[string]corev1.Pod{}
	for _, pod := range w.Pods("app=limits") {
		pods[pod.Name] = pod
	}
	root := m.argument(t, "--cgroup-root")
	expect := func(dir string, settings map[string]string) {
		t.Helper()
		for file, want := range settings {
			if got := m.result(t.Context(), "cat /sys/fs/cgroup"+dir+"/"+file); got != want {
				t.Errorf("%s of %s is %q, want %q", file, dir, got, want)
			}
		}
	}
	place := places{driver: driver, root: root}
	guaranteed := pods["guaranteed"]
	expect(place.pod(&guaranteed, ""), map[string]string{"memory.max": "167772160", "cpu.max": "50000 100000"})
	expect(place.container(&guaranteed, "", "main"), map[string]string{"memory.max": "100663296",
		"cpu.max": "30000 100000", "memory.oom.group": "1", "memory.min": "0", "memory.high": "max"})
	expect(place.container(&guaranteed, "", "beside"), map[string]string{"memory.max": "67108864",
		"cpu.max": "20000 100000"})
	burstable, bestEffort := pods["burstable"], pods["best-effort"]
	expect(place.pod(&burstable, "burstable"), map[string]string{"memory.max": "max", "cpu.max": "max 100000"})
	expect(place.container(&burstable, "burstable", "main"), map[string]string{"memory.max": "max",
		"memory.min": "0", "memory.high": "max"})
	expect(place.container(&bestEffort, "besteffort", "main"), map[string]string{"memory.max": "max",
		"cpu.weight": "1"})
	w.Await("kubectl top to show both containers of the Pod", func() string {
		r := w.TryKubectl("", "top", "pod", "guaranteed", "--containers", "--no-headers")
		if strings.Count(r.Stdout, "guaranteed") != 2 || strings.Contains(r.Stdout, " 0Mi") {
			return r.Stdout + r.Stderr
		}
		return ""
	})
	outOfMemory(t, w)
}

// outOfMemory lets a second process of a container take more memory than there is: the container ends as a whole, or
// its first process would go on without what it needs.
func outOfMemory(t *testing.T, w *scenario.World) {
	r := w.TryKubectl("", "exec", "guaranteed", "-c", "beside", "--", "sh", "-c",
		"x=0123456789abcdef; while true; do x=$x$x; done")
	if r.Code == 0 {
		t.Errorf("a process that takes all memory ended well: %s", r.Stdout)
	}
	w.Await("the container to have ended as OOMKilled and run again", func() string {
		for _, pod := range w.Pods("app=limits") {
			for _, c := range pod.Status.ContainerStatuses {
				ended := c.LastTerminationState.Terminated
				if c.Name == "beside" && ended != nil && ended.Reason == "OOMKilled" && c.RestartCount == 1 &&
					c.State.Running != nil {
					return ""
				}
				if pod.Name == "guaranteed" && c.Name == "main" && c.RestartCount != 0 {
					t.Fatalf("the container beside it was started again: %+v", c)
				}
			}
		}
		return fmt.Sprintf("the Pods are %s", w.Kubectl("get", "pods", "-o", "wide"))
	})
}

// places tells where a driver has the cgroups of Pods.
type places struct{ driver, root string }

// pod is a Pod's; class is the folder of those that are not Guaranteed.
func (p places) pod(pod *corev1.Pod, class string) string {
	elements := append(strings.Split(strings.Trim(p.root, "/"), "/"), class, "pod"+string(pod.UID))
	dir, slice := "/", ""
	for _, element := range elements {
		if element == "" {
			continue
		}
		if p.driver == cgroupfs {
			dir = path.Join(dir, element)
			continue
		}
		slice = strings.TrimPrefix(slice+"-"+strings.ReplaceAll(element, "-", "_"), "-")
		dir = path.Join(dir, slice+".slice")
	}
	return dir
}

func (p places) container(pod *corev1.Pod, class, name string) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == name {
			_, id, _ := strings.Cut(c.ContainerID, "://")
			if p.driver == systemd {
				id = "cri-containerd-" + id + ".scope"
			}
			return path.Join(p.pod(pod, class), id)
		}
	}
	return "no container " + name
}
