// Package volume sets up the volumes of Pods on the host and takes them down again.
//
// A Kind implements one type of volume; Host drives all kinds for a Pod. Setting up is level-triggered: it may be
// repeated at any time and then brings ConfigMaps, Secrets, downward API files and tokens up to date. Taking down
// needs only the disk: all that a volume leaves, mounts included, is under the Pod's folder.
package volume

import (
	"context"
	"os"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/downward"
)

// Mounter is all that volumes need of the kernel. Implementations: package mount (the kernel), package mountfake
// (memory). Methods are safe for concurrent use on different targets.
type Mounter interface {
	// Tmpfs mounts an empty file system in memory at the folder target. Size 0 means the kernel's own limit (half of
	// the memory); mode and gid are those of its root folder, a negative gid means the agent's own.
	Tmpfs(target string, size int64, mode uint32, gid int64) error
	// HugePages mounts an empty file system of huge pages of the given size at the folder target.
	HugePages(target string, pageSize, size int64, mode uint32, gid int64) error
	// Bind mounts the open source at target, which is of the same type (folder or not).
	Bind(source *os.File, target string) error
	// IsMount reports whether target is a mount point; false if it does not exist.
	IsMount(target string) (bool, error)
	// IsDevice reports whether target is a block device; false if it does not exist. It does not follow a link.
	IsDevice(target string) (bool, error)
	// Unmount removes one mount. A target that is no mount point is no error.
	Unmount(target string) error
	// Under returns the mount points at and below dir, the deepest first, with one entry for each of stacked mounts.
	Under(dir string) ([]string, error)
}

// Sources supplies the API objects that volumes show. An object that does not exist is a not-found error of the
// API.
type Sources interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	TrustBundle(ctx context.Context, name string) (*certificatesv1.ClusterTrustBundle, error)
	// TrustBundles returns all bundles of a signer, in no particular order.
	TrustBundles(ctx context.Context, signer string) ([]certificatesv1.ClusterTrustBundle, error)
	// ServiceAccountToken returns a token of the Pod's service account that is bound to the Pod and still fresh.
	ServiceAccountToken(ctx context.Context, pod *corev1.Pod, audience string, lifetime time.Duration) (Token, error)
}

// Token is a service account token; RefreshAt is when a fresh one should replace it.
type Token struct {
	Value     string
	RefreshAt time.Time
}

// Request asks to set up one volume of one Pod.
type Request struct {
	downward.View
	Volume *corev1.Volume
	// Dir is the volume's own folder; a kind that needs none leaves it alone. Its parent exists.
	Dir         string
	Allocatable corev1.ResourceList
}

// Result is a volume that is set up.
type Result struct {
	// Path is what containers mount. If Device is set, it is a block device, which they get as such.
	Path   string
	Device bool
	// Image means that containers mount an image of the runtime instead.
	Image bool
	// ReadOnly means that no container may write to it, even if its mount allows it.
	ReadOnly bool
	// Own means that the node has created all of it, so that the runtime may give it a container's SELinux label.
	Own bool
	// RefreshAt is when it must be set up again even if no object changes; zero means never.
	RefreshAt time.Time
}

// Kind implements one type of volume. It keeps no state: a new Kind carries on where another was killed.
type Kind interface {
	// Name is the name of the type's field in a volume, for example emptyDir, or the kubelet's name of the folder of
	// such volumes: kubernetes.io~ and the field.
	Name() string
	// Handles reports whether the volume is of this type.
	Handles(*corev1.Volume) bool
	// SetUp creates the volume or brings it up to date. It is idempotent and never touches what a container has
	// written.
	SetUp(ctx context.Context, request Request) (Result, error)
}

// TearsDown is a Kind whose volumes leave more than files and mounts below their folder.
type TearsDown interface {
	Kind
	// TearDown undoes that. It is called for every volume of the kind that has a folder, before anything is unmounted
	// or deleted, until it succeeds. It must rely only on the disk: the Pod's object may be gone.
	TearDown(ctx context.Context, pod types.UID, volume, dir string) error
}

// FSGroup returns the group that owns the Pod's volumes, or -1.
func FSGroup(pod *corev1.Pod) int64 {
	if pod.Spec.SecurityContext == nil || pod.Spec.SecurityContext.FSGroup == nil {
		return -1
	}
	return *pod.Spec.SecurityContext.FSGroup
}
