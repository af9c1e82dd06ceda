// Package podsource brings the Pods that are bound to this node to their workers, and nothing else: one watch with a
// field selector on the node's name.
package podsource

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Workers is who is told of Pods.
type Workers interface {
	// Set tells of a version of a Pod. known says that the node has run it before.
	Set(pod *corev1.Pod, known bool)
	// Remove tells that the API has no object of the UID any more.
	Remove(uid types.UID)
}

// Source is the watch. Make it with New, then Run it.
type Source struct {
	informer cache.SharedIndexInformer
}

// New returns the source of the Pods of a node. known tells of which Pods the node had something when it started.
func New(client kubernetes.Interface, nodeName string, workers Workers, known func(types.UID) bool) (*Source, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", nodeName).String()
		}),
		informers.WithTransform(strip))
	s := &Source{informer: factory.Core().V1().Pods().Informer()}
	_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { set(workers, known, object) },
		UpdateFunc: func(before, after any) {
			// A Pod that was replaced between two looks shows as an update of its name.
			if old, pod := before.(*corev1.Pod), after.(*corev1.Pod); old.UID != pod.UID {
				workers.Remove(old.UID)
			}
			set(workers, known, after)
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			workers.Remove(object.(*corev1.Pod).UID)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	return s, nil
}

func set(workers Workers, known func(types.UID) bool, object any) {
	pod := object.(*corev1.Pod)
	workers.Set(pod, known(pod.UID))
}

// Run watches until ctx ends.
func (s *Source) Run(ctx context.Context) { s.informer.RunWithContext(ctx) }

// Synced waits until the workers know all Pods that the API had at the beginning; false if ctx ends before.
func (s *Source) Synced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced)
}

// strip drops what the node never reads, to keep Pods small in memory.
func strip(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return object, nil
}
