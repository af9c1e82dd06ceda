// Package steps carries out what a Pod needs on the node besides its containers, one file per concern: directories,
// cgroup and volumes (prepare.go), images (image.go), the configurations that are passed to the runtime (config.go),
// and the termination messages of containers (message.go). Each step may be repeated at any time, after a crash too.
package steps

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/cpupin"
	"keelson.dev/services/nodeagent/internal/credentialprovider"
	"keelson.dev/services/nodeagent/internal/deviceplugin"
	"keelson.dev/services/nodeagent/internal/imagepull"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/objectcache"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/volume"
)

// Recorder records events about a Pod or one of its containers (fieldPath).
type Recorder interface {
	Record(pod *corev1.Pod, fieldPath string, e events.Event)
}

// Config is what the steps need.
type Config struct {
	Files   podfiles.Root
	Cgroups *cgroup.Tree
	Volumes *volume.Host
	Devices *deviceplugin.Manager
	CPUs    *cpupin.Pins
	Objects *objectcache.Cache
	Ranges  *podfiles.UserRanges
	Images  runtime.Images
	Pulls   imagepull.Settings
	Records *imagepull.Records
	// Providers are asked for credentials for images.
	Providers *credentialprovider.Providers
	Events    Recorder
	// Node is what the configurations of all Pods share.
	Node containerconfig.Node
	// Able returns the features of a runtime handler; the default one has no name.
	Able func(handler string) runtime.Handler
	// HostsFile is the node's own /etc/hosts.
	HostsFile []byte
	// Services returns the Services of a namespace, and kubernetes of the namespace default.
	Services func(namespace string) []*corev1.Service
	// Allocatable returns the node's allocatable resources.
	Allocatable func() corev1.ResourceList
	// HostIPs are the node's addresses.
	HostIPs func() []string
	// Gone is called when the files of a Pod have been removed, and what it used is unused.
	Gone func()
}

// Steps carries out steps. Those of different Pods may run concurrently.
type Steps struct {
	Config

	// turns limits how many images are pulled at once.
	turns *semaphore.Weighted

	mu sync.Mutex // guards volumes and classes
	// volumes are the volumes of the prepared Pods.
	volumes map[types.UID]volume.Volumes
	// classes holds the handlers of runtime classes, as last read.
	classes map[string]string
}

// New returns the steps of a node.
func New(config Config) *Steps {
	return &Steps{Config: config, turns: config.Pulls.Turns(), volumes: map[types.UID]volume.Volumes{},
		classes: map[string]string{}}
}

// Step is one step of preparing the node for a Pod. Both functions may be repeated at any time, after a crash too.
type Step struct {
	Name string
	// SetUp sets it up or refreshes it, and returns when it must be refreshed even if no object changes; zero means
	// never.
	SetUp func(ctx context.Context, pod *corev1.Pod) (refreshAt time.Time, err error)
	// Reason is the reason of the event about a failure; FailedMount by default.
	Reason string
	// AtMax means that SetUp gets a Pod that is being resized at a size with room for both the old and the new size.
	AtMax bool
	// TearDown takes it down and needs only the Pod's UID; nil if SetUp leaves nothing.
	TearDown func(ctx context.Context, pod *corev1.Pod) error
}

// ContainerInput describes one container instance to be configured.
type ContainerInput struct {
	Pod     *corev1.Pod
	Entry   lifecycle.Entry
	Attempt uint32
	Image   runtime.Image
	// VolumeImages are what VolumeImages has returned.
	VolumeImages map[string]string
	PodIPs       []string
	// TargetID is the instance whose processes an ephemeral container shares.
	TargetID string
}
