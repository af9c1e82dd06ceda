// Package quota says what single objects take of ResourceQuotas. It stands once, so that admission and the controller
// that keeps the quotas' status count alike.
//
//keelson:decision
package quota

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	requestsPrefix = corev1.DefaultResourceRequestsPrefix
	limitsPrefix   = "limits."
	countPrefix    = "count/"
	classInfix     = ".storageclass.storage.k8s.io/"
	devicesSuffix  = ".deviceclass.resource.k8s.io/devices"
)

// The kinds of which quotas count more than how many there are.
var (
	Pods     = schema.GroupResource{Resource: "pods"}
	Services = schema.GroupResource{Resource: "services"}
	Claims   = schema.GroupResource{Resource: "persistentvolumeclaims"}
	Devices  = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
)

// named are the amounts that are called by a fixed name, and the kind whose objects take them.
var named = map[corev1.ResourceName]schema.GroupResource{
	corev1.ResourcePods:                     Pods,
	corev1.ResourceCPU:                      Pods,
	corev1.ResourceMemory:                   Pods,
	corev1.ResourceEphemeralStorage:         Pods,
	corev1.ResourceRequestsCPU:              Pods,
	corev1.ResourceRequestsMemory:           Pods,
	corev1.ResourceRequestsEphemeralStorage: Pods,
	corev1.ResourceLimitsCPU:                Pods,
	corev1.ResourceLimitsMemory:             Pods,
	corev1.ResourceLimitsEphemeralStorage:   Pods,
	corev1.ResourceServices:                 Services,
	corev1.ResourceServicesNodePorts:        Services,
	corev1.ResourceServicesLoadBalancers:    Services,
	corev1.ResourcePersistentVolumeClaims:   Claims,
	corev1.ResourceRequestsStorage:          Claims,
	corev1.ResourceConfigMaps:               {Resource: "configmaps"},
	corev1.ResourceSecrets:                  {Resource: "secrets"},
	corev1.ResourceReplicationControllers:   {Resource: "replicationcontrollers"},
	corev1.ResourceQuotas:                   {Resource: "resourcequotas"},
}

// Ignored are the kinds that no quota counts: reports of what happened must not run out.
var Ignored = map[schema.GroupResource]struct{}{
	{Resource: "events"}:                         {},
	{Group: "events.k8s.io", Resource: "events"}: {},
}

// Kind returns the kind whose objects take of what a quota calls by this name, and false for a name that none takes.
func Kind(name corev1.ResourceName) (schema.GroupResource, bool) {
	if kind, ok := named[name]; ok {
		return kind, true
	}
	if counted, ok := strings.CutPrefix(string(name), countPrefix); ok {
		kind := schema.ParseGroupResource(counted)
		_, ignored := Ignored[kind]
		return kind, !ignored && kind.Resource != ""
	}
	if class, of, ok := strings.Cut(string(name), classInfix); ok && class != "" {
		rest := corev1.ResourceName(of)
		return Claims, rest == corev1.ResourceRequestsStorage || rest == corev1.ResourcePersistentVolumeClaims
	}
	if class, ok := strings.CutSuffix(string(name), devicesSuffix); ok {
		return Devices, class != ""
	}
	plain, requested := strings.CutPrefix(string(name), requestsPrefix)
	if strings.HasPrefix(plain, corev1.ResourceHugePagesPrefix) || requested && isExtended(plain) {
		return Pods, true
	}
	return schema.GroupResource{}, false
}

// isExtended reports whether a resource is of a domain that is not Kubernetes's own.
func isExtended(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, corev1.ResourceDefaultNamespacePrefix)
}
