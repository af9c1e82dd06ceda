package feed

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/scheduler/internal/groups"
)

// Change is one object that is new, changed or gone.
type Change interface {
	// Apply applies the change to the Cluster.
	Apply(to Cluster, now time.Time)
}

// Cluster follows the objects that the scheduler reads. Set is called with each object that is new or changed,
// Remove with each that is gone.
type Cluster interface {
	SetNode(n *corev1.Node)
	RemoveNode(name string)
	SetPod(p *corev1.Pod, now time.Time)
	RemovePod(p *corev1.Pod)
	SetGroup(g groups.Group)
	RemoveGroup(name groups.Name)
	SetPodGroup(g *schedulingv1beta1.PodGroup, now time.Time)
	RemovePodGroup(g *schedulingv1beta1.PodGroup)
	// SetNamespace is called without labels when the namespace is gone.
	SetNamespace(name string, of labels.Set)
	SetBudget(b *policyv1.PodDisruptionBudget)
	RemoveBudget(b *policyv1.PodDisruptionBudget)
	SetDeviceClaim(c *resourcev1.ResourceClaim)
	RemoveDeviceClaim(c *resourcev1.ResourceClaim)

	SetClaim(c *corev1.PersistentVolumeClaim)
	RemoveClaim(c *corev1.PersistentVolumeClaim)
	SetVolume(v *corev1.PersistentVolume)
	RemoveVolume(v *corev1.PersistentVolume)
	SetClass(c *storagev1.StorageClass)
	RemoveClass(name string)
	SetVolumeLimits(n *storagev1.CSINode)
	RemoveVolumeLimits(node string)
	SetAttachment(a *storagev1.VolumeAttachment)
	RemoveAttachment(name string)
	SetDriver(d *storagev1.CSIDriver)
	RemoveDriver(name string)
	SetStorage(s *storagev1.CSIStorageCapacity)
	RemoveStorage(s *storagev1.CSIStorageCapacity)
}

// Set returns the Change that an object is new or changed; false for one of a kind that the scheduler does not read.
func Set(o runtime.Object) (Change, bool) {
	if k := kindOf(o); k != nil {
		return k.changes.set(o), true
	}
	return nil, false
}

// Removed returns the Change that an object is gone; false for one of a kind that the scheduler does not read.
func Removed(o runtime.Object) (Change, bool) {
	if k := kindOf(o); k != nil {
		return k.changes.removed(o), true
	}
	return nil, false
}

// change is the Change of what is read off an object.
type change[T any] struct {
	about T
	apply func(Cluster, T, time.Time)
}

// Apply applies the change to the Cluster.
func (c change[T]) Apply(to Cluster, now time.Time) { c.apply(to, c.about, now) }

// whenever is for a Cluster that does not ask for the time.
func whenever[T any](apply func(Cluster, T)) func(Cluster, T, time.Time) {
	return func(to Cluster, about T, _ time.Time) { apply(to, about) }
}
