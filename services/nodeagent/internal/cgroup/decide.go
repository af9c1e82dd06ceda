package cgroup

import (
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/memory"
	"keelson.dev/services/nodeagent/internal/qos"
)

// Limits are the settings of one cgroup. Zero means no limit, or the least weight; a Swap and a Protection of zero are
// none.
type Limits struct {
	CPUShares int64
	// CPUQuota is in microseconds of each qos.CPUPeriod.
	CPUQuota int64
	Memory   int64
	Pids     int64
	// Swap is in bytes, or Unlimited. Only version 2 has a limit of it and a protection of memory.
	Swap       int64
	Protection memory.Protection
}

// Unlimited is a Swap that ends where that of the machine or of a cgroup above ends.
const Unlimited = -1

// LimitsOf returns the limits of a Pod's cgroup: its effective requests and limits, as the scheduler counts them.
// pidsLimit is the node's limit of processes per Pod; 0 means none.
func LimitsOf(pod *corev1.Pod, pidsLimit int64, rules memory.Rules) Limits {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	return Limits{
		CPUShares: qos.CPUShares(requests.Cpu().MilliValue()),
		CPUQuota:  qos.CPUQuota(qos.PodCPULimit(pod)),
		Memory:    qos.PodMemoryLimit(pod),
		Pids:      pidsLimit,

		Swap:       rules.SwapOfPod(pod),
		Protection: rules.ProtectPod(pod),
	}
}

// Shares are what the Pods that may still run request together.
type Shares struct {
	// BurstableMilli is that of the Burstable ones, in thousandths of a core.
	BurstableMilli int64
	// All is the protection of the cgroup of all Pods, Burstable that of the Burstable ones.
	All, Burstable memory.Protection
}

// SharesOf returns the shares of a node's Pods.
func SharesOf(pods []*corev1.Pod, rules memory.Rules) Shares {
	var shares Shares
	for _, pod := range pods {
		if qos.Class(pod) == corev1.PodQOSBurstable && !podview.IsTerminal(pod) {
			requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
			shares.BurstableMilli += requests.Cpu().MilliValue()
		}
	}
	shares.All, shares.Burstable = rules.ProtectAll(pods)
	return shares
}

// unified returns the settings of version 2 for which cgroups.Resources has no field. has reports whether the kernel
// has a setting.
func (l Limits) unified(has func(setting string) bool) map[string]string {
	out := map[string]string{}
	for setting, bytes := range map[string]int64{memory.SwapMax: l.Swap, memory.Min: l.Protection.Min,
		memory.Low: l.Protection.Low} {
		if !has(setting) {
			continue
		}
		out[setting] = strconv.FormatInt(bytes, 10)
		if bytes == Unlimited {
			out[setting] = memory.Max
		}
	}
	return out
}

// classes are the folders of the Pods that are not Guaranteed; Guaranteed ones are directly under the root.
var classes = map[corev1.PodQOSClass]string{
	corev1.PodQOSGuaranteed: "",
	corev1.PodQOSBurstable:  "burstable",
	corev1.PodQOSBestEffort: "besteffort",
}

const podPrefix = "pod"

// scopeSuffix ends the names of the units in which runtimes keep containers under systemd.
const scopeSuffix = ".scope"

// podPath returns the path of a Pod's cgroup, with folders as in the cgroupfs driver.
func podPath(root string, class corev1.PodQOSClass, uid types.UID) string {
	return path.Join(root, classes[class], podPrefix+string(uid))
}

// uidOf returns the UID of the Pod to which a cgroup's name belongs.
func uidOf(name string) (types.UID, bool) {
	uid, ok := strings.CutPrefix(name, podPrefix)
	return types.UID(uid), ok && uid != ""
}

// SliceName returns the name that systemd has for a path: each element is preceded by those above it, and dashes inside
// an element become underscores. /kubepods/burstable/podA-1 is kubepods-burstable-podA_1.slice.
func SliceName(cgroupPath string) string {
	elements := strings.Split(strings.Trim(cgroupPath, "/"), "/")
	for i, element := range elements {
		elements[i] = strings.ReplaceAll(element, "-", "_")
	}
	return strings.Join(elements, "-") + ".slice"
}

// slicePath returns the folder in which systemd keeps the unit of a path: each slice in that above it.
func slicePath(cgroupPath string) string {
	elements := strings.Split(strings.Trim(cgroupPath, "/"), "/")
	folder := "/"
	for i := range elements {
		unit := elements[i]
		if !strings.HasSuffix(unit, scopeSuffix) {
			unit = SliceName(strings.Join(elements[:i+1], "/"))
		}
		folder = path.Join(folder, unit)
	}
	return folder
}
