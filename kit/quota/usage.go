package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"keelson.dev/kit/seconds"
)

// Object is what an object takes of which only the number counts: one of its kind, by each name that this has.
func Object(kind schema.GroupResource) corev1.ResourceList {
	usage := corev1.ResourceList{countPrefix + corev1.ResourceName(kind.String()): one()}
	if kind.Group == "" {
		if counted, ok := named[corev1.ResourceName(kind.Resource)]; ok && counted == kind {
			usage[corev1.ResourceName(kind.Resource)] = one()
		}
	}
	return usage
}

// Pod is what a Pod takes that requests and limits so much altogether. One that has ended only exists.
func Pod(requests, limits corev1.ResourceList, ended bool) corev1.ResourceList {
	usage := Object(Pods)
	if ended {
		delete(usage, corev1.ResourcePods)
		return usage
	}
	for name, amount := range requests {
		switch plain := isPlain(name); {
		case plain || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			usage[name] = amount
			usage[requestsPrefix+name] = amount
		case isExtended(string(name)):
			usage[requestsPrefix+name] = amount
		}
	}
	for name, amount := range limits {
		if isPlain(name) {
			usage[limitsPrefix+name] = amount
		}
	}
	return usage
}

// HasEnded reports whether a Pod no longer takes room on a node: it has run to its end, or its grace period is over and
// the node has not confirmed its end.
func HasEnded(pod *corev1.Pod, now time.Time) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	overdue, ok := Overdue(pod)
	return ok && now.After(overdue)
}

// Overdue is when a Pod that is being deleted counts no more though it is still there; false for one that is not.
func Overdue(pod *corev1.Pod) (time.Time, bool) {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return time.Time{}, false
	}
	return pod.DeletionTimestamp.Add(seconds.Of(*pod.DeletionGracePeriodSeconds)), true
}

// isPlain reports whether quotas call a resource by its name, by its requests and by its limits.
func isPlain(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

// Service is what a Service takes: the ports that it has on every node, and a load balancer.
func Service(service *corev1.Service) corev1.ResourceList {
	usage := Object(Services)
	ports, balancers := 0, 0
	switch service.Spec.Type {
	case corev1.ServiceTypeNodePort:
		ports = len(service.Spec.Ports)
	case corev1.ServiceTypeLoadBalancer:
		balancers = 1
		allocates := service.Spec.AllocateLoadBalancerNodePorts
		for _, port := range service.Spec.Ports {
			if allocates == nil || *allocates || port.NodePort != 0 {
				ports++
			}
		}
	}
	usage[corev1.ResourceServicesNodePorts] = *resource.NewQuantity(int64(ports), resource.DecimalSI)
	usage[corev1.ResourceServicesLoadBalancers] = *resource.NewQuantity(int64(balancers), resource.DecimalSI)
	return usage
}

// Claim is what a PersistentVolumeClaim takes, of all storage and of its class's: what it asks for, or what it was
// promised already if that is more.
func Claim(claim *corev1.PersistentVolumeClaim) corev1.ResourceList {
	usage := Object(Claims)
	class := claim.Annotations[corev1.BetaStorageClassAnnotation]
	if class == "" && claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	ofClass := corev1.ResourceName(class + classInfix)
	if class != "" {
		usage[ofClass+corev1.ResourcePersistentVolumeClaims] = one()
	}
	storage, asked := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if !asked {
		return usage
	}
	if promised := claim.Status.AllocatedResources[corev1.ResourceStorage]; promised.Cmp(storage) > 0 {
		storage = promised
	}
	usage[corev1.ResourceRequestsStorage] = storage
	if class != "" {
		usage[ofClass+corev1.ResourceRequestsStorage] = storage
	}
	return usage
}

// ResourceClaim is what a claim of devices takes at most: of each class that it may get devices of as many as it may
// get, be it by another of the alternatives. What is asked for as an administrator is others' devices.
func ResourceClaim(claim *resourcev1.ResourceClaim) corev1.ResourceList {
	usage := Object(Devices)
	for i := range claim.Spec.Devices.Requests {
		most := map[string]int64{}
		request := &claim.Spec.Devices.Requests[i]
		if exact := request.Exactly; exact != nil && (exact.AdminAccess == nil || !*exact.AdminAccess) {
			most[exact.DeviceClassName] = max(0, devices(exact.AllocationMode, exact.Count))
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			count := devices(alternative.AllocationMode, alternative.Count)
			most[alternative.DeviceClassName] = max(most[alternative.DeviceClassName], count)
		}
		for class, count := range most {
			name := corev1.ResourceName(class + devicesSuffix)
			amount := usage[name]
			amount.Add(*resource.NewQuantity(count, resource.DecimalSI))
			usage[name] = amount
		}
	}
	return usage
}

// devices are how many a request may get: of all that there are, as many as a claim may have.
func devices(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	if mode == resourcev1.DeviceAllocationModeAll {
		return resourcev1.AllocationResultsMaxSize
	}
	return count
}

func one() resource.Quantity { return *resource.NewQuantity(1, resource.DecimalSI) }
