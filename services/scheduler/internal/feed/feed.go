// Package feed brings what happens to nodes, Pods, claims of volumes and devices, volumes and disruption budgets from
// the API to the scheduler, reduced to what it reads.
package feed

import (
	"context"
	"fmt"
	"sync"

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

	"keelson.dev/kit/fieldmask"
	"keelson.dev/kit/follow"
	"keelson.dev/services/scheduler/internal/groups"
)

// Change is one object that is new, changed or gone. Exactly one of the fields is set.
type Change struct {
	Node, GoneNode     *corev1.Node
	Pod, GonePod       *corev1.Pod
	Claim, GoneClaim   *corev1.PersistentVolumeClaim
	Volume, GoneVolume *corev1.PersistentVolume
	Class, GoneClass   *storagev1.StorageClass

	CSINode, GoneCSINode       *storagev1.CSINode
	Attachment, GoneAttachment *storagev1.VolumeAttachment
	Driver, GoneDriver         *storagev1.CSIDriver
	Storage, GoneStorage       *storagev1.CSIStorageCapacity

	Group              *groups.Group
	GoneGroup          *groups.Name
	Budget, GoneBudget *policyv1.PodDisruptionBudget

	Namespace, GoneNamespace *corev1.Namespace
	PodGroup, GonePodGroup   *schedulingv1beta1.PodGroup

	DeviceClaim, GoneDeviceClaim *resourcev1.ResourceClaim
}

// Feed watches nodes, Pods, what the claims of Pods depend on, what Pods belong to, and what keeps Pods from being
// disrupted.
type Feed struct {
	informers []cache.SharedIndexInformer
	synced    []cache.InformerSynced
}

// live selects the Pods that take room or want some: those that have ended look deleted.
var live = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
)

// New returns a Feed that calls deliver with every change, in the order of the API for each object. Calls for objects
// of different kinds come from different goroutines. Informers are made by the function. Of kinds that the apiserver
// does not serve there are no objects, except of nodes and Pods, for which the Feed waits.
func New(client kubernetes.Interface, newInformer fieldmask.NewInformer, deliver func(Change)) (*Feed, error) {
	core, storage := client.CoreV1().RESTClient(), client.StorageV1().RESTClient()
	apps := client.AppsV1().RESTClient()
	policy, scheduling := client.PolicyV1().RESTClient(), client.SchedulingV1beta1().RESTClient()
	f := &Feed{}
	for _, kind := range []struct {
		rest     cache.Getter
		resource string
		selector fields.Selector
		object   runtime.Object
		handler  cache.ResourceEventHandler
	}{
		{core, "nodes", fields.Everything(), &corev1.Node{}, nodeHandler(deliver)},
		{core, "pods", live, &corev1.Pod{}, podHandler(deliver)},
		{core, "persistentvolumeclaims", fields.Everything(), &corev1.PersistentVolumeClaim{}, claimHandler(deliver)},
		{core, "persistentvolumes", fields.Everything(), &corev1.PersistentVolume{}, volumeHandler(deliver)},
		{storage, "storageclasses", fields.Everything(), &storagev1.StorageClass{}, classHandler(deliver)},
		{storage, "csinodes", fields.Everything(), &storagev1.CSINode{}, follow.Handler(
			func(n *storagev1.CSINode) { deliver(Change{CSINode: n}) },
			func(n *storagev1.CSINode) { deliver(Change{GoneCSINode: n}) })},
		{storage, "volumeattachments", fields.Everything(), &storagev1.VolumeAttachment{},
			follow.Handler(
				func(a *storagev1.VolumeAttachment) { deliver(Change{Attachment: a}) },
				func(a *storagev1.VolumeAttachment) { deliver(Change{GoneAttachment: a}) })},
		{storage, "csidrivers", fields.Everything(), &storagev1.CSIDriver{}, follow.Handler(
			func(d *storagev1.CSIDriver) { deliver(Change{Driver: d}) },
			func(d *storagev1.CSIDriver) { deliver(Change{GoneDriver: d}) })},
		{storage, "csistoragecapacities", fields.Everything(), &storagev1.CSIStorageCapacity{}, follow.Handler(
			func(s *storagev1.CSIStorageCapacity) { deliver(Change{Storage: s}) },
			func(s *storagev1.CSIStorageCapacity) { deliver(Change{GoneStorage: s}) })},
		{core, "services", fields.Everything(), &corev1.Service{}, groupHandler(deliver)},
		{core, "replicationcontrollers", fields.Everything(), &corev1.ReplicationController{}, groupHandler(deliver)},
		{core, "namespaces", fields.Everything(), &corev1.Namespace{}, namespaceHandler(deliver)},
		{apps, "replicasets", fields.Everything(), &appsv1.ReplicaSet{}, groupHandler(deliver)},
		{apps, "statefulsets", fields.Everything(), &appsv1.StatefulSet{}, groupHandler(deliver)},
		{policy, "poddisruptionbudgets", fields.Everything(), &policyv1.PodDisruptionBudget{},
			budgetHandler(deliver)},
		{client.ResourceV1().RESTClient(), "resourceclaims", fields.Everything(), &resourcev1.ResourceClaim{},
			follow.Handler(
				func(c *resourcev1.ResourceClaim) { deliver(Change{DeviceClaim: c}) },
				func(c *resourcev1.ResourceClaim) { deliver(Change{GoneDeviceClaim: c}) })},
		{scheduling, "podgroups", fields.Everything(), &schedulingv1beta1.PodGroup{}, podGroupHandler(deliver)},
	} {
		source := cache.NewListWatchFromClient(kind.rest, kind.resource, "", kind.selector)
		if !isNeeded(kind.object) {
			source = optional(source)
		}
		informer := newInformer(source, kind.object, 0, nil)
		if err := f.follow(informer, kind.object, kind.handler); err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind.resource, err)
		}
	}
	return f, nil
}

// isNeeded says whether there is nothing to place or nowhere to place it as long as a kind is not served.
func isNeeded(object runtime.Object) bool {
	switch object.(type) {
	case *corev1.Node, *corev1.Pod:
		return true
	}
	return false
}

func (f *Feed) follow(informer cache.SharedIndexInformer, object runtime.Object,
	handler cache.ResourceEventHandler) error {
	trim := trimOf(object)
	if trim == nil {
		return fmt.Errorf("nothing says what to keep of a %T", object)
	}
	if err := informer.SetTransform(trim); err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return err
	}
	f.informers = append(f.informers, informer)
	f.synced = append(f.synced, registration.HasSynced)
	return nil
}

// Run watches until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, informer := range f.informers {
		wg.Go(func() { informer.RunWithContext(ctx) })
	}
	wg.Wait()
}

// Synced reports whether all that was there at the start has been delivered.
func (f *Feed) Synced() bool {
	for _, synced := range f.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// WaitForSync returns true when Synced, false when ctx ended before.
func (f *Feed) WaitForSync(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), f.synced...)
}

func nodeHandler(deliver func(Change)) cache.ResourceEventHandler {
	return follow.Handler(
		func(n *corev1.Node) { deliver(Change{Node: n}) },
		func(n *corev1.Node) { deliver(Change{GoneNode: n}) },
	)
}

func podHandler(deliver func(Change)) cache.ResourceEventHandler {
	return follow.Handler(
		func(p *corev1.Pod) { deliver(Change{Pod: p}) },
		func(p *corev1.Pod) { deliver(Change{GonePod: p}) },
	)
}

func claimHandler(deliver func(Change)) cache.ResourceEventHandler {
	return follow.Handler(
		func(c *corev1.PersistentVolumeClaim) { deliver(Change{Claim: c}) },
		func(c *corev1.PersistentVolumeClaim) { deliver(Change{GoneClaim: c}) },
	)
}

func volumeHandler(deliver func(Change)) cache.ResourceEventHandler {
	return follow.Handler(
		func(v *corev1.PersistentVolume) { deliver(Change{Volume: v}) },
		func(v *corev1.PersistentVolume) { deliver(Change{GoneVolume: v}) },
	)
}

func classHandler(deliver func(Change)) cache.ResourceEventHandler {
	return follow.Handler(
		func(c *storagev1.StorageClass) { deliver(Change{Class: c}) },
		func(c *storagev1.StorageClass) { deliver(Change{GoneClass: c}) },
	)
}

func groupHandler(deliver func(Change)) cache.ResourceEventHandler {
	return follow.Handler(
		func(o metav1.Object) {
			if g, ok := groups.Of(o); ok {
				deliver(Change{Group: &g})
			}
		},
		func(o metav1.Object) {
			if g, ok := groups.Of(o); ok {
				deliver(Change{GoneGroup: &g.Name})
			}
		},
	)
}

func namespaceHandler(deliver func(Change)) cache.ResourceEventHandler {
	return follow.Handler(
		func(n *corev1.Namespace) { deliver(Change{Namespace: n}) },
		func(n *corev1.Namespace) { deliver(Change{GoneNamespace: n}) },
	)
}

func budgetHandler(deliver func(Change)) cache.ResourceEventHandler {
	return follow.Handler(
		func(b *policyv1.PodDisruptionBudget) { deliver(Change{Budget: b}) },
		func(b *policyv1.PodDisruptionBudget) { deliver(Change{GoneBudget: b}) },
	)
}

func podGroupHandler(deliver func(Change)) cache.ResourceEventHandler {
	return follow.Handler(
		func(g *schedulingv1beta1.PodGroup) { deliver(Change{PodGroup: g}) },
		func(g *schedulingv1beta1.PodGroup) { deliver(Change{GonePodGroup: g}) },
	)
}
