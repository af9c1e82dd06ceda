package endpoint

import (
	"cmp"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxAddresses is how many addresses the Endpoints of a Service may have; clients need not cope with more.
	maxAddresses = 1000
	// truncated is the value of the annotation of Endpoints that have left addresses out.
	truncated = "truncated"
	// managedBy and manager mark the Endpoints of this controller: users may write those of Services without a
	// selector.
	managedBy = "endpoints.kubernetes.io/managed-by"
	manager   = "endpoint-controller"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Service *corev1.Service
	// Pods are the Pods that the Service selects.
	Pods []*corev1.Pod
	// Endpoints are the current Endpoints, or nil.
	Endpoints *corev1.Endpoints
	// Changed is the time of the first change that the Endpoints do not show yet; zero if unknown.
	Changed time.Time
}

// Plan names every effect of one pass. At most one of the two is set.
type Plan struct {
	Create, Update *corev1.Endpoints
}

// Decide returns the Endpoints to write, if any.
func Decide(in Input) Plan {
	subsets, over := truncate(subsets(in.Service, in.Pods))
	next := &corev1.Endpoints{}
	if in.Endpoints != nil {
		next = in.Endpoints.DeepCopy()
	} else {
		next.Namespace, next.Name = in.Service.Namespace, in.Service.Name
	}
	next.Subsets, next.Labels = subsets, labelsOf(in.Service)
	annotate(next, corev1.EndpointsOverCapacity, truncated, over)
	if have := in.Endpoints; have != nil && apiequality.Semantic.DeepEqual(have.Subsets, next.Subsets) &&
		maps.Equal(have.Labels, next.Labels) && maps.Equal(have.Annotations, next.Annotations) {
		return Plan{}
	}
	annotate(next, corev1.EndpointsLastChangeTriggerTime, in.Changed.UTC().Format(time.RFC3339Nano),
		!in.Changed.IsZero())
	if in.Endpoints == nil {
		if in.Service.DeletionTimestamp != nil {
			return Plan{}
		}
		return Plan{Create: next}
	}
	return Plan{Update: next}
}

// Leftover reports whether Endpoints must be deleted together with their Service.
func Leftover(endpoints *corev1.Endpoints) bool { return endpoints.Labels[managedBy] == manager }

func labelsOf(service *corev1.Service) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, service.Labels)
	delete(labels, corev1.IsHeadlessService)
	if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
		labels[corev1.IsHeadlessService] = ""
	}
	labels[managedBy] = manager
	return labels
}

func annotate(o metav1.Object, key, value string, holds bool) {
	annotations := o.GetAnnotations()
	if !holds {
		delete(annotations, key)
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	o.SetAnnotations(annotations)
}

// truncate drops the addresses beyond the limit: unready ones first, then the same share of each subset.
func truncate(all []corev1.EndpointSubset) (kept []corev1.EndpointSubset, over bool) {
	ready, rest := 0, 0
	for _, subset := range all {
		ready += len(subset.Addresses)
		rest += len(subset.NotReadyAddresses)
	}
	if ready+rest <= maxAddresses {
		return all, false
	}
	cut := func(addresses []corev1.EndpointAddress, of, room int) []corev1.EndpointAddress {
		if of <= room {
			return addresses
		}
		return addresses[:len(addresses)*room/of]
	}
	for _, subset := range all {
		subset.Addresses = cut(subset.Addresses, ready, maxAddresses)
		subset.NotReadyAddresses = cut(subset.NotReadyAddresses, rest, max(0, maxAddresses-ready))
		if len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
			kept = append(kept, subset)
		}
	}
	return kept, true
}

// compareAddresses orders addresses as they are written.
func compareAddresses(a, b corev1.EndpointAddress) int {
	uid := func(address corev1.EndpointAddress) string {
		if address.TargetRef == nil {
			return ""
		}
		return string(address.TargetRef.UID)
	}
	return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(uid(a), uid(b)))
}
