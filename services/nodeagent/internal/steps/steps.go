// Package steps carries out what a Pod needs on the node besides its containers, one file per concern: directories,
// cgroup and volumes (prepare.go), images (image.go), and the configurations that are handed to the runtime (config.go).
// Each step may be repeated at any time, after a crash too.
package steps

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// Prepared is what a Pod stands on.
type Prepared struct {
	// RefreshAt is when volumes must be brought up to date; zero means never by time alone.
	RefreshAt time.Time
}

// ContainerInput is one container instance to be configured.
type ContainerInput struct {
	Pod     *corev1.Pod
	Entry   lifecycle.Entry
	Attempt uint32
	Image   runtime.Image
	PodIPs  []string
	// TargetID is the instance whose processes an ephemeral container shares.
	TargetID string
}
