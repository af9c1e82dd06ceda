// Package volume sets the volumes of Pods up on the host and takes them down again.
//
// A Kind knows one type of volume; Host drives all kinds for a Pod. Setting up is level-triggered: it may be repeated
// at any time and then brings ConfigMaps, Secrets, downward API files and tokens up to date. Taking down needs nothing
// but the disk: all that a volume leaves, mounts included, lies under the Pod's folder.
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

// Mounter is all that volumes ask of the kernel. Implementations: package mount (the kernel), package mountfake
// (memory). Methods are safe for concurrent use on different targets.
type Mounter interface {
	// Tmpfs mounts an empty file system of memory at the folder target. Size 0 is the kernel's own limit (half of the
	// memory); mode and gid are those of its root folder, a negative gid is the agent's own.
	Tmpfs(target string, size int64, mode uint32, gid int64) error
	// HugePages mounts an empty file system of huge pages of the given size at the folder target.
	HugePages(target string, pageSize, size int64, mode uint32, gid int64) error
	// Bind shows what source has open at target, which is of the same sort (folder or not).
	Bind(source *os.File, target string) error
	// IsMount reports whether something is mounted right at target; false if there is no target.
	IsMount(target string) (bool, error)
	// Unmount takes one mount away. A target that is no mount point is no error.
	Unmount(target string) error
	// Under returns the mount points at and below dir, the deepest first; one entry per mount on top of each other.
	Under(dir string) ([]string, error)
}

// Sources supplies the API objects that volumes show. An object that does not exist is a not-found error of the API.
type Sources interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	TrustBundle(ctx context.Context, name string) (*certificatesv1.ClusterTrustBundle, error)
	// TrustBundles are all the bundles of a signer, in no order.
	TrustBundles(ctx context.Context, signer string) ([]certificatesv1.ClusterTrustBundle, error)
	// ServiceAccountToken returns a token of the Pod's service account that is bound to the Pod and still fresh.
	ServiceAccountToken(ctx context.Context, pod *corev1.Pod, audience string, lifetime time.Duration) (Token, error)
}

// Token is a service account token; RefreshAt is when a fresh one should take its place.
type Token struct {
	Value     string
	RefreshAt time.Time
}

// Request is one volume of one Pod to be set up.
type Request struct {
	downward.View
	Volume *corev1.Volume
	// Dir is the volume's own folder; a kind that needs none leaves it alone. Its parent exists.
	Dir         string
	Allocatable corev1.ResourceList
}

// Result is a volume that is set up.
type Result struct {
	// Path is what containers mount.
	Path string
	// Image says that they mount an image instead, which the runtime has.
	Image bool
	// ReadOnly means that no container may write to it, whatever its mount says.
	ReadOnly bool
	// Own says that the node has made all of it, so that the runtime may give it a container's SELinux label.
	Own bool
	// RefreshAt is when it must be set up again although no object has changed; zero means never.
	RefreshAt time.Time
}

// Kind knows one type of volume. It keeps no state: a new Kind carries on where another one was killed.
type Kind interface {
	// Name is the name of the type's field in a volume, for example emptyDir, or a kubelet's name of the folder of such
	// volumes: kubernetes.io~ and the field.
	Name() string
	// Handles reports whether the volume is of this type.
	Handles(*corev1.Volume) bool
	// SetUp makes the volume or brings it up to date. It is idempotent and never touches what a container has written.
	SetUp(ctx context.Context, request Request) (Result, error)
}

// TearsDown is a Kind whose volumes leave more than files and mounts below their folder.
type TearsDown interface {
	Kind
	// TearDown undoes that. It is called for every volume of the kind that has a folder, before anything is unmounted
	// or deleted, until it succeeds, and knows nothing but what is on disk: the Pod's object may be gone.
	TearDown(ctx context.Context, pod types.UID, volume, dir string) error
}

// FSGroup returns the group that owns the Pod's volumes, or -1.
func FSGroup(pod *corev1.Pod) int64 {
	if pod.Spec.SecurityContext == nil || pod.Spec.SecurityContext.FSGroup == nil {
		return -1
	}
	return *pod.Spec.SecurityContext.FSGroup
}
