// Package podworker runs Pods: one serial worker per Pod UID. A worker gathers what is known, lets podstate decide,
// starts what was decided as operations of their own goroutines, publishes the status, and waits for the next thing to
// happen: a new version of the Pod, a runtime event, the end of an operation, a probe's verdict, or a point in time.
//
// No operation ever blocks the worker, so a Pod that is being deleted is noticed in the middle of an image pull, and a
// shortened grace period in the middle of a stop.
package podworker

import (
	"context"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/checkpoint"
	"keelson.dev/services/nodeagent/internal/hooks"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/memory"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/probe"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/steps"
)

// Steps carries out what a container needs beyond the calls to the runtime. All of it is idempotent.
type Steps interface {
	// Sandbox returns the configuration of a sandbox and its runtime handler.
	Sandbox(ctx context.Context, pod *corev1.Pod, attempt uint32) (*cri.PodSandboxConfig, error)
	// Handler returns the name of the runtime handler for the Pod; empty is the default.
	Handler(ctx context.Context, pod *corev1.Pod) (string, error)
	// Image makes sure that the container's image is on the node.
	Image(ctx context.Context, pod *corev1.Pod, e lifecycle.Entry, sandbox *cri.PodSandboxConfig) (runtime.Image, error)
	// VolumeImages makes sure of the images that the container mounts as volumes. It returns their IDs by the volumes'
	// names.
	VolumeImages(ctx context.Context, pod *corev1.Pod, e lifecycle.Entry, sandbox *cri.PodSandboxConfig) (
		map[string]string, error)
	// Container returns the configuration of a container instance.
	Container(ctx context.Context, in steps.ContainerInput) (*cri.ContainerConfig, error)
	// Kill ends all processes of an instance without the runtime. It is for instances that the runtime cannot end.
	Kill(pod *corev1.Pod, containerID string) error
	// ResizeCgroup sets the limits of the Pod's cgroup to the Pod's size.
	ResizeCgroup(pod *corev1.Pod) error
	// Limits returns the limits of a running instance of the container.
	Limits(pod *corev1.Pod, container *corev1.Container) *cri.LinuxContainerResources
	// MemoryUsed returns the memory in bytes that an instance uses; without an ID, the memory that the whole Pod uses.
	MemoryUsed(pod *corev1.Pod, containerID string) (uint64, error)
	// Forget removes what outlives the containers: logs. It is called last.
	Forget(ctx context.Context, pod *corev1.Pod) error
	// Message returns the termination message of an instance that has exited.
	Message(pod *corev1.Pod, e lifecycle.Entry, c *observed.Container) string
}

// Hooks runs lifecycle hooks in a running instance. A call returns when the hook has ended, or when ctx does.
type Hooks interface {
	PostStart(ctx context.Context, target hooks.Target) error
	PreStop(ctx context.Context, target hooks.Target) error
}

// Probes runs the probes of instances. It wakes the Pod (Pool.Notify) when a result changes.
type Probes interface {
	// Sync makes probes run exactly for these instances of the Pod.
	Sync(pod types.UID, targets []probe.Target)
	// Result returns the combined result of an instance's probes; ok is false for one that is not probed.
	Result(containerID string) (result probe.Result, ok bool)
}

// Statuses writes statuses to the API. Publish does not block; a later status of a Pod replaces an earlier one. A
// brief status will be followed by another one soon.
type Statuses interface {
	Publish(pod *corev1.Pod, status corev1.PodStatus, brief bool)
	// Delete removes the object, with its UID as precondition. A nil error means that no object of the UID is left.
	Delete(ctx context.Context, pod *corev1.Pod) error
	// Forget drops what is pending for the Pod.
	Forget(uid types.UID)
}

// Recorder records events about a Pod or one of its containers (fieldPath).
type Recorder interface {
	Record(pod *corev1.Pod, fieldPath string, e events.Event)
}

// Config is what workers need.
type Config struct {
	Log     *zap.Logger
	Runtime runtime.Runtime
	// Preparation are the steps that prepare the node for a Pod, set up in this order and taken down in reverse when
	// no process of the Pod is left. Each step has its own back-off.
	Preparation []steps.Step
	Steps       Steps
	Hooks       Hooks
	Probes      Probes
	Statuses    Statuses
	Events      Recorder
	Records     *checkpoint.Store
	// Admit decides whether the node admits a Pod beside the others that it has; nil admits all.
	Admit func(pod *corev1.Pod, others []*corev1.Pod) *podstate.Outcome
	// Allocatable is what the node has for Pods: resizes stay within it.
	Allocatable func() corev1.ResourceList
	// PinsCPUs means that Guaranteed Pods have CPUs of their own.
	PinsCPUs bool
	// Memory determines which containers have swap.
	Memory memory.Rules
	// Devices returns the status of the devices of a Pod's containers, by container; nil means no devices.
	Devices func(uid types.UID) map[string][]corev1.ResourceStatus
	// Observer is told what workers do.
	Observer Observer
	// Stopped, unless nil, is called when no process of a Pod is left and none can appear; it must not block.
	Stopped func(uid types.UID)
	// Gone, unless nil, is called when nothing of a Pod is left and its worker has ended.
	Gone func(pod *corev1.Pod)
	// HostIPs are the node's addresses.
	HostIPs func() []string
	// RuntimeName is the scheme of container IDs.
	RuntimeName string
}
