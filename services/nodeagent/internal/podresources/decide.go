package podresources

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/utils/cpuset"

	"keelson.dev/services/nodeagent/internal/deviceplugin"
	"keelson.dev/services/nodeagent/internal/lifecycle"
)

// holds is what the containers of a Pod have exclusively, by their names.
type holds struct {
	Devices deviceplugin.Allocation
	CPUs    map[string]cpuset.CPUSet
}

// isTold reports whether a container is reported: those that run as long as the Pod are.
func isTold(entry lifecycle.Entry) bool {
	return entry.Kind == lifecycle.Main || entry.Kind == lifecycle.Sidecar
}

// tell returns what clients get about a Pod, sidecars first.
func tell(pod *corev1.Pod, has holds) *api.PodResources {
	out := &api.PodResources{Name: pod.Name, Namespace: pod.Namespace}
	for _, entry := range lifecycle.Entries(pod) {
		if name := entry.Spec.Name; isTold(entry) {
			out.Containers = append(out.Containers, &api.ContainerResources{Name: name,
				Devices: devices(has.Devices[name]), CpuIds: ids(has.CPUs[name])})
		}
	}
	return out
}

// devices returns one entry for each device, as the kubelet does: so each could have a topology of its own.
func devices(of deviceplugin.Devices) []*api.ContainerDevices {
	var out []*api.ContainerDevices
	for _, name := range slices.Sorted(maps.Keys(of)) {
		for _, id := range of[name] {
			out = append(out, &api.ContainerDevices{ResourceName: string(name), DeviceIds: []string{id}})
		}
	}
	return out
}

// ids returns the numbers of CPUs.
func ids(cpus cpuset.CPUSet) []int64 {
	var out []int64
	for _, id := range cpus.List() {
		out = append(out, int64(id))
	}
	return out
}

// inOrder sorts Pods by namespace, name and UID: two of one name may exist while the first one ends.
func inOrder(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
