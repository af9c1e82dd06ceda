package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
)

// shortestGracePeriodSeconds is what a negative grace period means.
const shortestGracePeriodSeconds = 1

// SetDefaults fills the unset fields of a Pod's spec. It is idempotent.
func SetDefaults(spec *corev1.PodSpec) {
	setSharedDefaults(spec)
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = ptr.To(corev1.DefaultEnableServiceLinks)
	}
	if *spec.TerminationGracePeriodSeconds < 0 {
		spec.TerminationGracePeriodSeconds = ptr.To(int64(shortestGracePeriodSeconds))
	}
	eachContainer(spec, func(c *corev1.Container) {
		requestLimits(&c.Resources)
		if spec.HostNetwork {
			exposeOnHost(c.Ports)
		}
	})
	requestPodLimits(spec)
}

// SetTemplateDefaults fills the unset fields of a workload's Pod template. Requests that follow from limits, host ports
// that follow from hostNetwork and enableServiceLinks are left to the Pods, so that a stored template stays what its
// author wrote.
func SetTemplateDefaults(template *corev1.PodTemplateSpec) {
	setSharedDefaults(&template.Spec)
}

func setSharedDefaults(spec *corev1.PodSpec) {
	defaults.Set(&spec.DNSPolicy, corev1.DNSClusterFirst)
	defaults.Set(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	defaults.Set(&spec.SchedulerName, corev1.DefaultSchedulerName)
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = ptr.To(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	setServiceAccountDefaults(spec)
	for i := range spec.Volumes {
		setVolumeDefaults(&spec.Volumes[i])
	}
	eachContainer(spec, setContainerDefaults)
	for i := range spec.EphemeralContainers {
		SetEphemeralContainerDefaults(&spec.EphemeralContainers[i])
	}
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
}

// setServiceAccountDefaults keeps the deprecated alias equal to the field that replaced it.
func setServiceAccountDefaults(spec *corev1.PodSpec) {
	defaults.Set(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
}

// requestPodLimits gives a Pod with limits of its own the requests that go with them: what its containers request in
// sum, and the limit itself where no container requests anything. Huge pages cannot be overcommitted, so their request
// is always the limit.
func requestPodLimits(spec *corev1.PodSpec) {
	if spec.Resources == nil || len(spec.Resources.Limits) == 0 {
		return
	}
	requests := spec.Resources.Requests.DeepCopy()
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	fill := func(from corev1.ResourceList, wanted func(corev1.ResourceName) bool) {
		for name, quantity := range from {
			if _, set := requests[name]; !set && wanted(name) {
				requests[name] = quantity.DeepCopy()
			}
		}
	}
	sum := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
	fill(sum, func(name corev1.ResourceName) bool {
		return resourcehelper.IsSupportedPodLevelResource(name) && !isHugePages(name)
	})
	fill(spec.Resources.Limits, resourcehelper.IsSupportedPodLevelResource)
	if len(requests) > 0 {
		spec.Resources.Requests = requests
	}
}

// roundUp cuts quantities to the milli scale, the finest that the API keeps.
func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

func eachContainer(spec *corev1.PodSpec, visit func(*corev1.Container)) {
	for i := range spec.InitContainers {
		visit(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		visit(&spec.Containers[i])
	}
}
