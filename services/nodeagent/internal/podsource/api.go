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

	"keelson.dev/kit/follow"
)

// api is one watch with a field selector on the node's name.
type api struct {
	informer cache.SharedIndexInformer
	// handed reports whether the workers, and not only the informer's store, have the Pods of the first list.
	handed cache.InformerSynced
}

// API returns the source of the Pods that the API binds to a node. known reports whether the node had something of a
// Pod when it started.
func API(client kubernetes.Interface, nodeName string, workers Workers, known func(types.UID) bool) (Source, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", nodeName).String()
		}),
		informers.WithTransform(trim))
	s := &api{informer: factory.Core().V1().Pods().Informer()}
	registration, err := s.informer.AddEventHandler(follow.Handler(
		func(pod *corev1.Pod) { workers.Set(pod, known(pod.UID)) },
		func(pod *corev1.Pod) { workers.Remove(pod.UID) }))
	if err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	s.handed = registration.HasSynced
	return s, nil
}

// Run implements Source.
func (s *api) Run(ctx context.Context) { s.informer.RunWithContext(ctx) }

// Synced implements Source.
func (s *api) Synced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), s.handed)
}

// trim drops fields that the node never reads, to keep Pods small in memory.
func trim(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return object, nil
}
