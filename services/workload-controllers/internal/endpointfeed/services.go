// Package endpointfeed says which Services a change concerns, and what belongs to one, for the controllers that keep
// the addresses behind Services.
//
//	decide_change.go    whether a Pod's change can be seen behind a Service (pure)
//	services.go         the Services and their Pods
//	slices.go           the EndpointSlices of a Service
//	write.go            writes them
package endpointfeed

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
)

// Services knows which Pods each Service selects.
type Services struct {
	pods     *podset.Index
	selected *podset.Selections
}

// NewServices groups the Pods of an index by Services, until Close.
func NewServices(pods *podset.Index) *Services {
	return &Services{pods: pods, selected: podset.NewSelections(pods)}
}

// Close ends the grouping: it is of no use after the controller's term.
func (s *Services) Close() { s.selected.Close() }

// Put takes in a Service.
func (s *Services) Put(service *corev1.Service) {
	var selector *metav1.LabelSelector // nil selects nothing
	if Selects(service) {
		selector = &metav1.LabelSelector{MatchLabels: service.Spec.Selector}
	}
	s.selected.Put(service, selector)
}

// Remove forgets a Service.
func (s *Services) Remove(service *corev1.Service) { s.selected.Remove(service) }

// Pods returns the Pods that a Service selects, in no order, but those with an address that the API refuses.
func (s *Services) Pods(service *corev1.Service) []*corev1.Pod {
	pods := s.pods.Members(s.selected.Key(service.Namespace, service.Name))
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !addressable(pod) })
}

// OnPod wakes up the Services behind which a Pod's change can be seen.
func (s *Services) OnPod(pod *corev1.Pod, change podset.Change) []reconcile.Request {
	if change.Last != nil && !change.Gone && !Changed(change.Last, pod) {
		return nil
	}
	return requests(pod.Namespace, s.selected.Concerned(pod, change))
}

// OnNode wakes up the Services with Pods on a node that came or is in another zone than before.
func (s *Services) OnNode() handler.TypedFuncs[*corev1.Node, reconcile.Request] {
	wakeAll := func(node *corev1.Node, q wake.Queue) {
		for _, pod := range s.pods.Members(podset.Node(node.Name)) {
			for _, request := range requests(pod.Namespace, s.selected.Matching(pod)) {
				q.Add(request)
			}
		}
	}
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], q wake.Queue) {
			wakeAll(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], q wake.Queue) {
			if e.ObjectOld.Labels[corev1.LabelTopologyZone] != e.ObjectNew.Labels[corev1.LabelTopologyZone] {
				wakeAll(e.ObjectNew, q)
			}
		},
	}
}

func requests(namespace string, names []string) []reconcile.Request {
	var all []reconcile.Request
	for _, name := range names {
		all = append(all, wake.Request(namespace, name))
	}
	return all
}
