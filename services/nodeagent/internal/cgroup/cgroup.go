// Package cgroup keeps the cgroups of a node: one root for all Pods, one folder each for Burstable and BestEffort Pods,
// and one cgroup per Pod, in which the container runtime creates those of the containers.
//
//	<root>/pod<uid>              a Guaranteed Pod
//	<root>/burstable/pod<uid>
//	<root>/besteffort/pod<uid>
//
// The hierarchies may be version 1, hybrid or version 2; with the systemd driver each element is a slice. The package
// finds everything on disk and remembers nothing.
package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/memory"
	"keelson.dev/services/nodeagent/internal/qos"
	"keelson.dev/services/nodeagent/internal/reserved"
)

// Driver is the owner of the hierarchy on this host.
type Driver string

// The drivers that container runtimes know.
const (
	Cgroupfs Driver = "cgroupfs"
	Systemd  Driver = "systemd"
)

// Mode is how the hierarchies of the host are mounted.
type Mode string

// The modes of Linux hosts.
const (
	Legacy  Mode = "v1"
	Hybrid  Mode = "hybrid"
	Unified Mode = "v2"
)

// Kernel is all that this package needs of the host. Paths are absolute within the hierarchy and in folder form.
// Implementations: package-level Host (the real one) and package cgroupfake.
type Kernel interface {
	// Mode returns how hierarchies are mounted.
	Mode() Mode
	// Ensure creates the cgroup with its parents and sets its limits.
	Ensure(path string, limits Limits) error
	// LimitsSwap reports whether the kernel has a limit of swap for a cgroup that exists.
	LimitsSwap(path string) bool
	// Remove kills what is left in the cgroup and removes it with all below. A missing cgroup is no error.
	Remove(path string) error
	// Kill kills all processes in the cgroup and below. A missing cgroup is no error.
	Kill(path string) error
	// Usage reads what the cgroup and all below it use; fs.ErrNotExist if it is missing.
	Usage(path string) (Usage, error)
	// Transfers reads what the cgroup and all below it have moved from and to disks; fs.ErrNotExist if it is missing.
	Transfers(path string) ([]Transfer, error)
	// Processes returns the processes directly in the cgroup; fs.ErrNotExist if it is missing.
	Processes(path string) ([]int, error)
	// Children returns the names of the cgroups directly below; none if the cgroup is missing.
	Children(path string) ([]string, error)
}

// Usage is what a cgroup uses.
type Usage struct {
	// CPUNanos is the CPU time in nanoseconds since the cgroup was created.
	CPUNanos uint64
	// CPUUserNanos and CPUSystemNanos are its parts outside and in the kernel, which may lag behind it.
	CPUUserNanos, CPUSystemNanos uint64
	// Periods are those in which the CPU time was limited and a process wanted to run, ThrottledPeriods those in which
	// the limit stopped processes, for ThrottledNanos together.
	Periods, ThrottledPeriods, ThrottledNanos uint64
	// Memory is all memory in bytes, WorkingSet the part that cannot be dropped at once, RSS the anonymous part, Cache
	// the memory of files, Mapped the part of it that processes have mapped, MaxMemory the maximum of Memory so far.
	Memory, WorkingSet, RSS, Cache, Mapped, MaxMemory uint64
	// Swap is what is in swap, MemoryFailures how often the memory limit was hit.
	Swap, MemoryFailures uint64
	// SwapLimited means that SwapLimit, which may be 0, is the limit of Swap; version 1 has none.
	SwapLimited bool
	SwapLimit   uint64
	// MemoryLimit is 0 without a limit.
	MemoryLimit             uint64
	PageFaults, MajorFaults uint64
	Pids                    uint64
	// Only version 2 reports Stalls.
	Stalls Stalls
}

// Transfer is what was moved from and to one disk since the cgroup was created.
type Transfer struct {
	// Major and Minor are the numbers of the disk's device.
	Major, Minor                           uint64
	Reads, Writes, BytesRead, BytesWritten uint64
}

// Tree is a node's part of the hierarchy. It is safe for concurrent use.
type Tree struct {
	kernel Kernel
	driver Driver
	root   string
	pids   int64
	memory memory.Rules
}

// NewTree returns a tree at the given root, for example /kubepods. pidsLimit is the limit of processes per Pod; 0
// means none. No other nodeagent of the machine may use the root.
func NewTree(kernel Kernel, driver Driver, root string, pidsLimit int64) (*Tree, error) {
	if !path.IsAbs(root) || path.Clean(root) != root || root == "/" {
		return nil, fmt.Errorf("cgroup root %q must be a clean absolute path below /", root)
	}
	if driver != Cgroupfs && driver != Systemd {
		return nil, fmt.Errorf("cgroup driver %q must be %s or %s", driver, Cgroupfs, Systemd)
	}
	return &Tree{kernel: kernel, driver: driver, root: root, pids: pidsLimit}, nil
}

// WithMemory returns the same tree for a node with these rules of memory.
func (t *Tree) WithMemory(rules memory.Rules) *Tree {
	other := *t
	other.memory = rules
	return &other
}

// Mode returns how the hierarchies of the host are mounted.
func (t *Tree) Mode() Mode { return t.kernel.Mode() }

// LimitsSwap reports whether the kernel limits the swap of Pods. The cgroups of the node must exist.
func (t *Tree) LimitsSwap() bool { return t.kernel.LimitsSwap(t.root) }

// EnsureNode creates the cgroups above the Pods. limited is the limit for all Pods together; missing amounts are
// not limited. It is idempotent.
func (t *Tree) EnsureNode(limited corev1.ResourceList) error {
	if err := t.ensureAll(limited, memory.Protection{}); err != nil {
		return err
	}
	for class, name := range classes {
		if name == "" {
			continue
		}
		if err := t.kernel.Ensure(path.Join(t.root, name), t.classLimits(class, Shares{})); err != nil {
			return fmt.Errorf("making the cgroup of %s pods: %w", class, err)
		}
	}
	return nil
}

// ensureAll creates the cgroup of all Pods or brings its limits up to date.
func (t *Tree) ensureAll(limited corev1.ResourceList, protection memory.Protection) error {
	processes := limited[reserved.PIDs]
	limits := Limits{CPUShares: qos.CPUShares(limited.Cpu().MilliValue()), Memory: limited.Memory().Value(),
		Pids: processes.Value(), Swap: t.swapAbovePods(), Protection: protection}
	if err := t.kernel.Ensure(t.root, limits); err != nil {
		return fmt.Errorf("making the cgroup of all pods: %w", err)
	}
	return nil
}

// swapAbovePods returns the swap limit of the cgroups above Pods: none, unless some Pods get swap. With swap, Pods
// without a memory limit would push out the memory of others.
func (t *Tree) swapAbovePods() int64 {
	if t.memory.SharesSwap() {
		return Unlimited
	}
	return 0
}

// classLimits returns the limits of the cgroup of all Pods of a class.
func (t *Tree) classLimits(class corev1.PodQOSClass, shares Shares) Limits {
	if class != corev1.PodQOSBurstable {
		return Limits{CPUShares: qos.CPUShares(0)}
	}
	return Limits{CPUShares: qos.CPUShares(shares.BurstableMilli), Swap: t.swapAbovePods(),
		Protection: shares.Burstable}
}

// Share gives all Burstable Pods together the weight of their requests, and protects the memory that Pods request.
// limited is the limit for all Pods together.
func (t *Tree) Share(limited corev1.ResourceList, shares Shares) error {
	if t.memory.Reserves() {
		if err := t.ensureAll(limited, shares.All); err != nil {
			return err
		}
	}
	burstable := path.Join(t.root, classes[corev1.PodQOSBurstable])
	if err := t.kernel.Ensure(burstable, t.classLimits(corev1.PodQOSBurstable, shares)); err != nil {
		return fmt.Errorf("weighing the cgroup of burstable pods: %w", err)
	}
	return nil
}

// SharesOf returns the shares of a node's Pods.
func (t *Tree) SharesOf(pods []*corev1.Pod) Shares { return SharesOf(pods, t.memory) }

// EnsurePod creates the Pod's cgroup or brings its limits up to date. It is idempotent. A Pod with CPUs of its own
// has no CPU quota.
func (t *Tree) EnsurePod(pod *corev1.Pod, ownCPUs bool) error {
	limits := LimitsOf(pod, t.pids, t.memory)
	if ownCPUs {
		limits.CPUQuota = 0
	}
	return failpoint.Around("nodeagent/cgroup.create", func() error {
		if err := t.kernel.Ensure(podPath(t.root, qos.Class(pod), pod.UID), limits); err != nil {
			return fmt.Errorf("making the pod's cgroup: %w", err)
		}
		return nil
	})
}

// Parent returns the Pod's cgroup in the form that a runtime expects in CgroupParent.
func (t *Tree) Parent(pod *corev1.Pod) string {
	path := podPath(t.root, qos.Class(pod), pod.UID)
	if t.driver == Systemd {
		return SliceName(path)
	}
	return path
}

// RemovePod removes the Pod's cgroups in every QoS class: the Pod's own may no longer be known. Call it when no
// container of the Pod is left. It is idempotent.
func (t *Tree) RemovePod(uid types.UID) error {
	if err := failpoint.Inject("nodeagent/cgroup.remove.before"); err != nil {
		return err
	}
	var problems []error
	for class := range classes {
		if err := t.kernel.Remove(podPath(t.root, class, uid)); err != nil {
			problems = append(problems, fmt.Errorf("removing the pod's cgroup: %w", err))
		}
	}
	return errors.Join(problems...)
}

// Pods returns every Pod that has a cgroup, sorted.
func (t *Tree) Pods() ([]types.UID, error) {
	var uids []types.UID
	for _, class := range classes {
		names, err := t.kernel.Children(path.Join(t.root, class))
		if err != nil {
			return nil, fmt.Errorf("listing cgroups: %w", err)
		}
		for _, name := range names {
			if uid, ok := uidOf(name); ok {
				uids = append(uids, uid)
			}
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids), nil
}

// NodeUsage reads what all Pods use together.
func (t *Tree) NodeUsage() (Usage, error) { return t.kernel.Usage(t.root) }

// PodUsage reads what a Pod uses.
func (t *Tree) PodUsage(pod *corev1.Pod) (Usage, error) {
	return t.kernel.Usage(podPath(t.root, qos.Class(pod), pod.UID))
}

// ContainerUsage reads what the container with the runtime's ID uses.
func (t *Tree) ContainerUsage(pod *corev1.Pod, id string) (Usage, error) {
	return t.kernel.Usage(t.containerPath(qos.Class(pod), pod.UID, id))
}

// ContainerTransfers reads what a container has moved from and to disks.
func (t *Tree) ContainerTransfers(pod *corev1.Pod, id string) ([]Transfer, error) {
	return t.kernel.Transfers(t.containerPath(qos.Class(pod), pod.UID, id))
}

// Path returns the kernel's path of the cgroup of a Pod's container or sandbox; without an ID that of the Pod,
// without a Pod that of all Pods.
func (t *Tree) Path(pod *corev1.Pod, id string) string {
	at := t.root
	switch {
	case pod != nil && id != "":
		at = t.containerPath(qos.Class(pod), pod.UID, id)
	case pod != nil:
		at = podPath(t.root, qos.Class(pod), pod.UID)
	}
	if t.driver != Systemd {
		return at
	}
	return slicePath(at)
}

// Processes returns the processes of the container or sandbox with the runtime's ID.
func (t *Tree) Processes(pod *corev1.Pod, id string) ([]int, error) {
	return t.kernel.Processes(t.containerPath(qos.Class(pod), pod.UID, id))
}

// KillContainer kills all processes of a container. The Pod may be known by its UID only, so it tries every class.
func (t *Tree) KillContainer(pod *corev1.Pod, id string) error {
	var problems []error
	for class := range classes {
		if err := t.kernel.Kill(t.containerPath(class, pod.UID, id)); err != nil {
			problems = append(problems, fmt.Errorf("killing the container's processes: %w", err))
		}
	}
	return errors.Join(problems...)
}

func (t *Tree) containerPath(class corev1.PodQOSClass, uid types.UID, id string) string {
	name := id
	if t.driver == Systemd {
		name = "cri-containerd-" + id + scopeSuffix
	}
	return path.Join(podPath(t.root, class, uid), name)
}
