package node

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// Facts are what the node knows about itself when it starts.
type Facts struct {
	Name   string
	IPs    []string
	Port   int32
	Labels map[string]string
	Taints []corev1.Taint
	// PodCIDR is set on the Node if it has none.
	PodCIDR string
	// MilliCPU, Memory and Storage are the machine's; MaxPods is configured.
	MilliCPU, Memory, Storage int64
	MaxPods                   int64
	// HugePages maps page sizes to how much memory is reserved as such pages. Both are in bytes.
	HugePages map[int64]int64
	// MaxPIDs is the kernel's maximum number of processes and threads.
	MaxPIDs int64
	// Reserved is kept from Pods for the system and the mesh, Headroom so that Pods are evicted before the machine has
	// nothing left.
	Reserved, Headroom corev1.ResourceList
	Info               corev1.NodeSystemInfo
	// Devices are the resources of device plugins, UsableDevices the healthy ones.
	Devices, UsableDevices corev1.ResourceList
}

// Health is what the node repeatedly determines about itself. An empty text means no problem.
type Health struct {
	RuntimeProblem string
	NetworkProblem string
	// PodNetwork is why Pods have no network; nil if another program provides the network and reports on it.
	PodNetwork *string
	// Pressures are the conditions for what the node is short of.
	Pressures []corev1.NodeConditionType
	// Runtime holds the runtime's features; nil while it does not answer.
	Runtime *Runtime
	// Images are the images on the node.
	Images []corev1.ContainerImage
	// VolumesInUse are the attached volumes that Pods of the node use.
	VolumesInUse []corev1.UniqueVolumeName
}

// Runtime holds the features of a container runtime, in the API's form.
type Runtime struct {
	Handlers []corev1.NodeRuntimeHandler
	Features *corev1.NodeFeatures
}

// RuntimeOf converts the runtime's status to the API's form.
func RuntimeOf(s runtime.Status) *Runtime {
	out := &Runtime{}
	for _, h := range s.Handlers {
		out.Handlers = append(out.Handlers, corev1.NodeRuntimeHandler{Name: h.Name,
			Features: &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &h.RecursiveReadOnlyMounts,
				UserNamespaces: &h.UserNamespaces}})
	}
	if s.SupplementalGroupsPolicy != nil {
		out.Features = &corev1.NodeFeatures{SupplementalGroupsPolicy: s.SupplementalGroupsPolicy}
	}
	return out
}

// capacity returns what the machine has.
func (f Facts) capacity() corev1.ResourceList {
	out := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(f.MilliCPU, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(f.Memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(f.Storage, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(f.MaxPods, resource.DecimalSI),
	}
	for size, all := range f.HugePages {
		name := corev1.ResourceHugePagesPrefix + resource.NewQuantity(size, resource.BinarySI).String()
		out[corev1.ResourceName(name)] = *resource.NewQuantity(all, resource.BinarySI)
	}
	return out
}

// labels returns the labels that the node gives itself; configured ones cannot hide the well-known ones.
func (f Facts) labels() map[string]string {
	out := maps.Clone(f.Labels)
	if out == nil {
		out = map[string]string{}
	}
	out[corev1.LabelHostname] = f.Name
	out[corev1.LabelOSStable] = f.Info.OperatingSystem
	out[corev1.LabelArchStable] = f.Info.Architecture
	return out
}

// register returns the Node to be registered, given the API's Node (nil for none). It keeps labels of other writers
// and the taints of a known Node.
func register(f Facts, old *corev1.Node) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.Name}}
	if old != nil {
		node = old.DeepCopy()
	} else {
		node.Spec.Taints = slices.Clone(f.Taints)
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, f.labels())
	if node.Spec.PodCIDR == "" && f.PodCIDR != "" {
		node.Spec.PodCIDR, node.Spec.PodCIDRs = f.PodCIDR, []string{f.PodCIDR}
	}
	return node
}

// statusOf returns the status of the Node, given the API's. It sets only what the node itself determines:
// resources, addresses and conditions of other writers stay, and so does every field that is not named here.
func statusOf(f Facts, h Health, old *corev1.NodeStatus, now time.Time) corev1.NodeStatus {
	out := *old.DeepCopy()
	out.Capacity, out.Allocatable = f.resources(old)
	out.NodeInfo = f.Info
	out.DaemonEndpoints.KubeletEndpoint.Port = f.Port
	if h.Runtime != nil {
		out.RuntimeHandlers, out.Features = h.Runtime.Handlers, h.Runtime.Features
	}
	out.Images = h.Images
	out.VolumesInUse = h.VolumesInUse
	out.Addresses = f.addresses(old.Addresses)
	seen := now.Truncate(time.Second)
	for _, condition := range h.conditions() {
		condition.LastHeartbeatTime = metav1.NewTime(seen)
		out.Conditions, _ = conditions.Node.Set(out.Conditions, condition, seen)
	}
	return out
}

// resources returns the capacity and the part of it that Pods may use, given the API's status. Resources that other
// writers have added to the capacity (extended resources) stay, and are allocatable in full. Those no longer in the
// capacity are removed from the allocatable too.
func (f Facts) resources(old *corev1.NodeStatus) (capacity, allocatable corev1.ResourceList) {
	capacity = corev1.ResourceList{}
	maps.Copy(capacity, old.Capacity)
	maps.DeleteFunc(capacity, func(name corev1.ResourceName, _ resource.Quantity) bool { return isHugePages(name) })
	maps.Copy(capacity, f.capacity())
	maps.Copy(capacity, f.Devices)
	allocatable = maps.Clone(capacity)
	maps.Copy(allocatable, f.Allocatable())
	maps.Copy(allocatable, f.UsableDevices)
	return capacity, allocatable
}

// isHugePages reports whether a resource is huge pages of any size; a machine may have lost them at its last boot.
func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// addresses returns the node's own addresses followed by the old ones of the types that only other programs
// determine.
func (f Facts) addresses(old []corev1.NodeAddress) []corev1.NodeAddress {
	var out []corev1.NodeAddress
	for _, ip := range f.IPs {
		out = append(out, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	out = append(out, corev1.NodeAddress{Type: corev1.NodeHostName, Address: f.Name})
	for _, address := range old {
		if address.Type != corev1.NodeInternalIP && address.Type != corev1.NodeHostName {
			out = append(out, address)
		}
	}
	return out
}

// conditions returns the node's own conditions, as the API names them.
func (h Health) conditions() []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, is bool,
		bad, good, badText, goodText string) corev1.NodeCondition {
		if is {
			return corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, Reason: bad, Message: badText}
		}
		return corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: good, Message: goodText}
	}
	pressure := func(kind corev1.NodeConditionType, bad, good, badText, goodText string) corev1.NodeCondition {
		return condition(kind, slices.Contains(h.Pressures, kind), bad, good, badText, goodText)
	}
	all := []corev1.NodeCondition{
		pressure(corev1.NodeMemoryPressure, "KubeletHasInsufficientMemory",
			"KubeletHasSufficientMemory",
			"kubelet has insufficient memory available", "kubelet has sufficient memory available"),
		pressure(corev1.NodeDiskPressure, "KubeletHasDiskPressure", "KubeletHasNoDiskPressure",
			"kubelet has disk pressure", "kubelet has no disk pressure"),
		pressure(corev1.NodePIDPressure, "KubeletHasInsufficientPID", "KubeletHasSufficientPID",
			"kubelet has insufficient PID available", "kubelet has sufficient PID available"),
		h.ready(),
	}
	if h.PodNetwork != nil {
		all = append(all, condition(corev1.NodeNetworkUnavailable, *h.PodNetwork != "", "NoRouteCreated",
			"RouteCreated", *h.PodNetwork, "the network of Pods is there"))
	}
	return all
}

func (h Health) ready() corev1.NodeCondition {
	var problems []string
	for _, p := range []string{h.RuntimeProblem, h.NetworkProblem} {
		if p != "" {
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady",
			Message: strings.Join(problems, "; ")}
	}
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "kubelet is posting ready status"}
}

// reportEvery is how often the status is written without a change.
const reportEvery = 5 * time.Minute

// due reports whether a status must be written: it differs from the API's, or the last write is long ago. The times
// of heartbeats do not count as a change.
func due(stored, next *corev1.NodeStatus, writtenAt, now time.Time, equal func(a, b any) bool) bool {
	if now.Sub(writtenAt) >= reportEvery {
		return true
	}
	a, b := stored.DeepCopy(), next.DeepCopy()
	for _, s := range []*corev1.NodeStatus{a, b} {
		for i := range s.Conditions {
			s.Conditions[i].LastHeartbeatTime, s.Conditions[i].LastTransitionTime = metav1.Time{}, metav1.Time{}
		}
	}
	return !equal(a, b)
}

// memTotal reads the machine's memory in bytes from the text of /proc/meminfo; 0 if it is missing there.
func memTotal(meminfo string) int64 { return meminfoBytes(meminfo, "MemTotal:") }

// swapOf reads the size of a machine's swap from the text of proc_meminfo(5); nil if it has none.
func swapOf(meminfo string) *corev1.NodeSwapStatus {
	total := meminfoBytes(meminfo, "SwapTotal:")
	if total == 0 {
		return nil
	}
	return &corev1.NodeSwapStatus{Capacity: &total}
}

func meminfoBytes(meminfo, key string) int64 {
	for line := range strings.Lines(meminfo) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// osImage reads the name of the system from the text of os-release(5).
func osImage(release string) string {
	for line := range strings.Lines(release) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return "Linux"
}
