package service

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// strategy rules the writes of a Service itself; the status belongs to /status. What is allocated is settled before.
var strategy = rest.Strategy[*corev1.Service]{
	Name:             apivalidation.NameIsDNS1035Label,
	PrepareForCreate: func(s *corev1.Service) { s.Status = corev1.ServiceStatus{} },
	PrepareForUpdate: func(s, old *corev1.Service) { s.Status = old.Status; dropStaleIngress(s) },
	Validate:         Validate,
	ValidateUpdate:   ValidateUpdate,
	ResetFields:      map[string][]string{"v1": {"status"}},
}

// statusStrategy rules the writes of /status: they change nothing but the status.
var statusStrategy = rest.Strategy[*corev1.Service]{
	Name:             apivalidation.NameIsDNS1035Label,
	PrepareForUpdate: func(s, old *corev1.Service) { s.Spec = old.Spec; dropStaleIngress(s) },
	ValidateUpdate:   ValidateStatusUpdate,
	ResetFields:      map[string][]string{"v1": {"spec"}},
}

// dropStaleIngress forgets the load balancer of a Service that has none any more.
func dropStaleIngress(s *corev1.Service) {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}
