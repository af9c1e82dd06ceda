// Package runtime is the contract between the nodeagent and a container runtime: what the agent asks for and what it
// may rely on. Its values are those of CRI v1 where the agent passes a configuration through, and those of package
// observed where it learns something. Implementations: runtime/cri (a real runtime over its socket) and runtime/fake
// (in memory, programmable). Both pass runtime/conformance.
package runtime

import (
	"bytes"
	"context"
	"errors"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/observed"
)

// Labels of every sandbox and container, by which an agent that starts finds its Pods again. They are the kubelet's, so
// existing tools (crictl) show them.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
)

// Annotations that a container has from its creation on.
const (
	// AnnotationImage is the image reference of the Pod spec that the instance was created from.
	AnnotationImage = "nodeagent.keelson.dev/image"
	// AnnotationVolumeImages holds the IDs of the images that the instance mounts as volumes, separated by commas.
	AnnotationVolumeImages = "nodeagent.keelson.dev/volume-images"
	// AnnotationTerminationMessagePath is the host's path of the file that holds the termination message.
	AnnotationTerminationMessagePath = "nodeagent.keelson.dev/termination-message-file"
)

// ErrNotFound is wrapped by errors about a sandbox, container or image that the runtime does not have.
var ErrNotFound = errors.New("not found in the container runtime")

// Errors that PullImage wraps: why it cannot get an image.
var (
	ErrInvalidImageName    = errors.New("invalid image name")
	ErrRegistryUnavailable = errors.New("image registry unavailable")
	ErrSignatureInvalid    = errors.New("image signature invalid")
)

// Runtime is a container runtime. Every method may be called from many goroutines at once. Stop and remove calls are
// idempotent: what is already gone is no error.
type Runtime interface {
	Pods
	Sandboxes
	Containers
	Images
	Streams

	// Version names the runtime.
	Version(ctx context.Context) (Version, error)
	// Status reports whether the runtime and its network can run Pods.
	Status(ctx context.Context) (Status, error)
	// EndOrphans ends and removes the machine's remains of containers that the runtime itself does not know, because it
	// was killed while it created or removed them. It does not touch what the runtime is creating meanwhile.
	EndOrphans(ctx context.Context) error
	// UpdatePodCIDR passes the node's Pod range to the runtime.
	UpdatePodCIDR(ctx context.Context, cidr string) error
}

// Pods is the read side of a runtime.
type Pods interface {
	// ListPods returns every Pod with a sandbox or container in the runtime. Container details beyond ID, name, attempt
	// and state may be missing: ask PodState.
	ListPods(ctx context.Context) ([]observed.Pod, error)
	// PodState returns all that the runtime has of one Pod, sorted; an empty Pod if it has nothing.
	PodState(ctx context.Context, podUID string) (observed.Pod, error)
	// Watch calls notify for each change of a container or sandbox until the context ends or the stream breaks, and
	// returns why it ended. Events may be lost between two calls: list again after each.
	Watch(ctx context.Context, notify func(Event)) error
}

// Sandboxes creates and removes the shared environments of Pods.
type Sandboxes interface {
	// RunSandbox creates and starts a sandbox with its network and returns its ID.
	RunSandbox(ctx context.Context, config *cri.PodSandboxConfig, handler string) (string, error)
	// StopSandbox ends all processes in the sandbox and frees its network.
	StopSandbox(ctx context.Context, id string) error
	// RemoveSandbox removes a sandbox and its containers.
	RemoveSandbox(ctx context.Context, id string) error
}

// Containers creates, starts, stops and removes container instances.
type Containers interface {
	// CreateContainer creates an instance in a sandbox without starting it and returns its ID.
	CreateContainer(ctx context.Context, sandboxID string, config *cri.ContainerConfig,
		sandbox *cri.PodSandboxConfig) (string, error)
	// StartContainer starts a created instance.
	StartContainer(ctx context.Context, id string) error
	// StopContainer sends the image's stop signal (TERM by default), waits up to timeout for the end and then kills.
	// A timeout of 0 kills at once, without the signal. It returns when the instance has exited. If ctx ends first the
	// instance may run on: call again.
	StopContainer(ctx context.Context, id string, timeout time.Duration) error
	// RemoveContainer removes an instance that has exited or never started, with all remains of an interrupted start.
	RemoveContainer(ctx context.Context, id string) error
	// UpdateContainer changes the limits of a running instance; a zero leaves a limit unchanged.
	UpdateContainer(ctx context.Context, id string, limits *cri.LinuxContainerResources) error
	// Layers returns how much the instances of a Pod have written into their own file systems. The runtime's
	// measurement may be some seconds old.
	Layers(ctx context.Context, podUID string) ([]Layer, error)
	// ReopenLog makes the runtime write to a new log file after the old one was moved away.
	ReopenLog(ctx context.Context, id string) error
	// ExecSync runs a command in an instance and waits for its end. A command that runs and fails is no error: see
	// ExecResult.ExitCode.
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (ExecResult, error)
}

// Images keeps the images of the node.
type Images interface {
	// ImageStatus returns the image of a reference; ok is false if the node does not have it.
	ImageStatus(ctx context.Context, ref string) (image Image, ok bool, err error)
	// PullImage fetches an image and returns its ID.
	PullImage(ctx context.Context, ref string, auth *cri.AuthConfig, sandbox *cri.PodSandboxConfig) (string, error)
	// ListImages returns all images of the node.
	ListImages(ctx context.Context) ([]Image, error)
	// RemoveImage removes an image by its ID.
	RemoveImage(ctx context.Context, id string) error
	// ImageFs describes the file system that holds images and what containers write.
	ImageFs(ctx context.Context) (ImageFs, error)
}

// Streams returns URLs at which the runtime serves one interactive session.
type Streams interface {
	ExecURL(ctx context.Context, req *cri.ExecRequest) (string, error)
	AttachURL(ctx context.Context, req *cri.AttachRequest) (string, error)
	PortForwardURL(ctx context.Context, req *cri.PortForwardRequest) (string, error)
}

// Version names a runtime, for example containerd v2.3.7.
type Version struct {
	Name    string
	Version string
}

// Status is the readiness of a runtime. An empty problem means that the part works.
type Status struct {
	RuntimeProblem string
	NetworkProblem string
	// CgroupDriver is "cgroupfs" or "systemd"; empty if the runtime does not report it.
	CgroupDriver string
	// Handlers are the runtime's handlers, by name; the default one has no name. Empty if the runtime is too old to
	// report them.
	Handlers []Handler
	// SupplementalGroupsPolicy reports whether the groups of a Pod can be kept from those of its image; nil if the
	// runtime does not report it.
	SupplementalGroupsPolicy *bool
}

// Handler is a runtime handler and its features.
type Handler struct {
	Name string
	// UserNamespaces reports whether Pods can run in a user namespace.
	UserNamespaces bool
	// RecursiveReadOnlyMounts reports whether mounts can be made read-only recursively.
	RecursiveReadOnlyMounts bool
}

// Handler returns the features of a handler; one that the runtime does not report has none.
func (s Status) Handler(name string) Handler {
	for _, h := range s.Handlers {
		if h.Name == name {
			return h
		}
	}
	return Handler{Name: name}
}

// Event reports that something about a Pod's containers has changed. It contains no state: ask PodState.
type Event struct {
	PodUID      string
	ContainerID string
}

// ExecResult is the outcome of a command that ran to its end.
type ExecResult struct {
	Stdout   []byte
	Stderr   []byte
	ExitCode int32
}

// maxOutput is how much of a command's output is shown.
const maxOutput = 10 << 10

// Output returns what the command wrote, cut at 10 KiB, for a message.
func (r ExecResult) Output() string {
	text := bytes.TrimSpace(bytes.Join([][]byte{head(r.Stdout), head(r.Stderr)}, nil))
	return string(bytes.ToValidUTF8(head(text), nil))
}

func head(text []byte) []byte { return text[:min(len(text), maxOutput)] }

// Layer is what one instance of a container has written into its own file system.
type Layer struct {
	Container     string
	Attempt       uint32
	Bytes, Inodes int64
}

// ImageFs is the file system that holds images and what containers write.
type ImageFs struct {
	// Dir is a folder on it; empty if the runtime does not report it.
	Dir string
	// Bytes and Inodes are what the images use; nil if the runtime does not report it.
	Bytes, Inodes *uint64
}

// Image is an image on the node.
type Image struct {
	ID      string
	Tags    []string
	Digests []string
	Size    uint64
	Pinned  bool
	// UID and User are the image's configured user: the number, or else the name; both empty mean root.
	UID  *int64
	User string
}
