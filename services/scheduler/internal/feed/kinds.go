package feed

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
	"keelson.dev/services/scheduler/internal/groups"
)

// kind is a kind of objects that the scheduler reads.
type kind struct {
	rest     func(kubernetes.Interface) cache.Getter
	resource string
	object   runtime.Object
	trim     cache.TransformFunc
	changes  changeMaker
}

// kinds are those that the scheduler reads.
var kinds = []kind{
	{coreV1, "nodes", &corev1.Node{}, trimNode, applies(Cluster.SetNode, byName[*corev1.Node](Cluster.RemoveNode))},
	{coreV1, "pods", &corev1.Pod{}, trimPod, appliesAt(Cluster.SetPod, Cluster.RemovePod)},
	{coreV1, "persistentvolumeclaims", &corev1.PersistentVolumeClaim{}, trimClaim,
		applies(Cluster.SetClaim, Cluster.RemoveClaim)},
	{coreV1, "persistentvolumes", &corev1.PersistentVolume{}, trimVolume,
		applies(Cluster.SetVolume, Cluster.RemoveVolume)},
	{storageV1, "storageclasses", &storagev1.StorageClass{}, trimClass,
		applies(Cluster.SetClass, byName[*storagev1.StorageClass](Cluster.RemoveClass))},
	{storageV1, "csinodes", &storagev1.CSINode{}, trimCSINode,
		applies(Cluster.SetVolumeLimits, byName[*storagev1.CSINode](Cluster.RemoveVolumeLimits))},
	{storageV1, "volumeattachments", &storagev1.VolumeAttachment{}, trimAttachment,
		applies(Cluster.SetAttachment, byName[*storagev1.VolumeAttachment](Cluster.RemoveAttachment))},
	{storageV1, "csidrivers", &storagev1.CSIDriver{}, trimDriver,
		applies(Cluster.SetDriver, byName[*storagev1.CSIDriver](Cluster.RemoveDriver))},
	{storageV1, "csistoragecapacities", &storagev1.CSIStorageCapacity{}, trimStorage,
		applies(Cluster.SetStorage, Cluster.RemoveStorage)},
	{coreV1, "services", &corev1.Service{}, trimGroup, appliesGroup[*corev1.Service]()},
	{coreV1, "replicationcontrollers", &corev1.ReplicationController{}, trimGroup,
		appliesGroup[*corev1.ReplicationController]()},
	{coreV1, "namespaces", &corev1.Namespace{}, trimNamespace, applies(
		func(to Cluster, n *corev1.Namespace) { to.SetNamespace(n.Name, n.Labels) },
		func(to Cluster, n *corev1.Namespace) { to.SetNamespace(n.Name, nil) })},
	{appsV1, "replicasets", &appsv1.ReplicaSet{}, trimGroup, appliesGroup[*appsv1.ReplicaSet]()},
	{appsV1, "statefulsets", &appsv1.StatefulSet{}, trimGroup, appliesGroup[*appsv1.StatefulSet]()},
	{policyV1, "poddisruptionbudgets", &policyv1.PodDisruptionBudget{}, trimBudget,
		applies(Cluster.SetBudget, Cluster.RemoveBudget)},
	{resourceV1, "resourceclaims", &resourcev1.ResourceClaim{}, trimDeviceClaim,
		applies(Cluster.SetDeviceClaim, Cluster.RemoveDeviceClaim)},
	{schedulingV1beta1, "podgroups", &schedulingv1beta1.PodGroup{}, trimPodGroup,
		appliesAt(Cluster.SetPodGroup, Cluster.RemovePodGroup)},
}

func coreV1(c kubernetes.Interface) cache.Getter     { return c.CoreV1().RESTClient() }
func appsV1(c kubernetes.Interface) cache.Getter     { return c.AppsV1().RESTClient() }
func storageV1(c kubernetes.Interface) cache.Getter  { return c.StorageV1().RESTClient() }
func policyV1(c kubernetes.Interface) cache.Getter   { return c.PolicyV1().RESTClient() }
func resourceV1(c kubernetes.Interface) cache.Getter { return c.ResourceV1().RESTClient() }
func schedulingV1beta1(c kubernetes.Interface) cache.Getter {
	return c.SchedulingV1beta1().RESTClient()
}

// Kinds returns an object of each kind that the scheduler reads.
func Kinds() []runtime.Object {
	out := make([]runtime.Object, 0, len(kinds))
	for i := range kinds {
		out = append(out, kinds[i].object.DeepCopyObject())
	}
	return out
}

// kindOf returns the kind of an object, nil when the scheduler does not read it.
func kindOf(o runtime.Object) *kind {
	for i := range kinds {
		if kinds[i].changes.knows(o) {
			return &kinds[i]
		}
	}
	return nil
}

// selector selects the objects of the kind that are read.
func (k *kind) selector() fields.Selector {
	if k.resource == "pods" {
		return live
	}
	return fields.Everything()
}

// isNeeded reports whether the scheduler has nothing to place, or nowhere to place it, until the kind is served.
func (k *kind) isNeeded() bool { return k.resource == "nodes" || k.resource == "pods" }

// changeMaker makes the Change that an object of a kind is new, changed or gone.
type changeMaker interface {
	knows(o runtime.Object) bool
	set(o runtime.Object) Change
	removed(o runtime.Object) Change
	handler(deliver func(Change)) cache.ResourceEventHandler
}

// object is an object of the API.
type object interface {
	metav1.Object
	runtime.Object
}

// typed is the changeMaker of the objects of one type.
type typed[T object] struct{ onSet, onRemoved func(T) Change }

func (t typed[T]) knows(o runtime.Object) bool {
	_, ok := o.(T)
	return ok
}

func (t typed[T]) set(o runtime.Object) Change { return t.onSet(o.(T)) }

func (t typed[T]) removed(o runtime.Object) Change { return t.onRemoved(o.(T)) }

func (t typed[T]) handler(deliver func(Change)) cache.ResourceEventHandler {
	return follow.Handler(
		func(o T) { deliver(t.onSet(o)) },
		func(o T) { deliver(t.onRemoved(o)) },
	)
}

func applies[T object](set, removed func(Cluster, T)) changeMaker {
	return appliesAt(whenever(set), removed)
}

func appliesAt[T object](set func(Cluster, T, time.Time), removed func(Cluster, T)) changeMaker {
	return typed[T]{
		onSet:     func(o T) Change { return change[T]{about: o, apply: set} },
		onRemoved: func(o T) Change { return change[T]{about: o, apply: whenever(removed)} },
	}
}

// appliesGroup is for the kinds of groups: it reads what is needed of an object before the Change is delivered.
func appliesGroup[T object]() changeMaker {
	return typed[T]{
		onSet: func(o T) Change {
			g, _ := groups.Of(o)
			return change[groups.Group]{about: g, apply: whenever(Cluster.SetGroup)}
		},
		onRemoved: func(o T) Change {
			g, _ := groups.Of(o)
			return change[groups.Name]{about: g.Name, apply: whenever(Cluster.RemoveGroup)}
		},
	}
}

func byName[T object](remove func(Cluster, string)) func(Cluster, T) {
	return func(to Cluster, o T) { remove(to, o.GetName()) }
}
