// Package observed describes what the container runtime reports about a Pod, as plain values without side effects.
// Decisions read them; only package runtime and its implementations create them.
package observed

import (
	"cmp"
	"slices"
	"time"
)

// ContainerState is the state of one container instance.
type ContainerState string

// The states of a container instance. An instance only moves from left to right:
//
//	Created -> Running -> Exited
//
// Unknown is possible at any time: the runtime has lost track, so the process may be alive.
const (
	Created ContainerState = "Created"
	Running ContainerState = "Running"
	Exited  ContainerState = "Exited"
	Unknown ContainerState = "Unknown"
)

// Sandbox is one sandbox of a Pod.
type Sandbox struct {
	ID        string
	PodUID    string
	Namespace string
	Name      string
	Attempt   uint32
	Ready     bool
	CreatedAt time.Time
	// IPs are the Pod's addresses, the primary one first; empty for a Pod on the host's network.
	IPs []string
}

// Container is one instance of a container: a restart creates a new instance with the next attempt number.
type Container struct {
	ID        string
	SandboxID string
	PodUID    string
	Name      string
	Attempt   uint32
	State     ContainerState
	CreatedAt time.Time
	// StartedAt and FinishedAt are zero until the instance has started or finished.
	StartedAt  time.Time
	FinishedAt time.Time
	ExitCode   int32
	// Reason and Message are the runtime's description of the end of the instance, for example OOMKilled.
	Reason  string
	Message string
	// Image is the requested reference, ImageID the image that runs.
	Image   string
	ImageID string
	LogPath string
	// User is the initial user of the first process; nil if the runtime does not report it.
	User *User
	// Mounts are the mounts of the instance.
	Mounts []Mount
	// Annotations are those with which the instance was created.
	Annotations map[string]string
}

// Mount is a mount of an instance.
type Mount struct {
	ContainerPath     string
	RecursiveReadOnly bool
	// Image is the ID of the image that is mounted; empty for anything else.
	Image string
}

// User is the identity of a process.
type User struct {
	UID, GID           int64
	SupplementalGroups []int64
}

// Live reports whether a process of the instance may exist now or later. Only an exited instance certainly has
// none: a created instance may be about to start, an unknown one may be running.
func (c *Container) Live() bool { return c.State != Exited }

// Pod is everything that the runtime has of one Pod.
type Pod struct {
	UID       string
	Namespace string
	Name      string
	// Sandboxes and Containers are sorted newest first (Sort).
	Sandboxes  []Sandbox
	Containers []Container
}

// Sort orders sandboxes and containers newest first: by attempt, then by creation time, then by ID.
func (p *Pod) Sort() {
	slices.SortFunc(p.Sandboxes, func(a, b Sandbox) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(p.Containers, func(a, b Container) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Attempt, a.Attempt),
			b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// Empty reports whether the runtime has nothing of the Pod.
func (p *Pod) Empty() bool { return len(p.Sandboxes) == 0 && len(p.Containers) == 0 }

// Sandbox returns the newest sandbox, or nil.
func (p *Pod) Sandbox() *Sandbox {
	if len(p.Sandboxes) == 0 {
		return nil
	}
	return &p.Sandboxes[0]
}

// Latest returns the newest instance of the named container, or nil.
func (p *Pod) Latest(name string) *Container {
	for i := range p.Containers {
		if p.Containers[i].Name == name {
			return &p.Containers[i]
		}
	}
	return nil
}

// ByID returns the instance with the given ID, or nil.
func (p *Pod) ByID(id string) *Container {
	for i := range p.Containers {
		if p.Containers[i].ID == id {
			return &p.Containers[i]
		}
	}
	return nil
}

// Live reports whether anything of the Pod may run.
func (p *Pod) Live() bool {
	return slices.ContainsFunc(p.Sandboxes, func(s Sandbox) bool { return s.Ready }) ||
		slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Live() })
}
