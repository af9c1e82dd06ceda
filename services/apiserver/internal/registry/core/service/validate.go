package service

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/clusterip"
)

const maxAffinitySeconds = 24 * 60 * 60

var (
	specPath       = field.NewPath("spec")
	clusterIPsPath = specPath.Child("clusterIPs")

	serviceTypes = []corev1.ServiceType{
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer,
		corev1.ServiceTypeNodePort,
	}
	internalPolicies = []corev1.ServiceInternalTrafficPolicy{corev1.ServiceInternalTrafficPolicyCluster,
		corev1.ServiceInternalTrafficPolicyLocal}
	externalPolicies = []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster,
		corev1.ServiceExternalTrafficPolicyLocal}
	trafficDistributions = []string{corev1.ServiceTrafficDistributionPreferClose,
		corev1.ServiceTrafficDistributionPreferSameNode, corev1.ServiceTrafficDistributionPreferSameZone}
)

// Validate returns what is wrong with a defaulted Service that has been given what it needs.
func Validate(s *corev1.Service) field.ErrorList {
	spec := &s.Spec
	errs := fieldcheck.OneOf(spec.Type, specPath.Child("type"), serviceTypes...)
	errs = append(errs, validatePorts(spec)...)
	errs = append(errs, metavalidation.ValidateLabels(spec.Selector, specPath.Child("selector"))...)
	errs = append(errs, validateAffinity(spec)...)
	errs = append(errs, validateByType(spec)...)
	errs = append(errs, validateClusterIPs(spec)...)
	errs = append(errs, validateFamilies(spec)...)
	for i, ip := range spec.ExternalIPs {
		errs = append(errs, fieldcheck.RoutableIP(ip, specPath.Child("externalIPs").Index(i))...)
	}
	errs = append(errs, validateTrafficPolicies(spec)...)
	return append(errs, validateLoadBalancer(spec)...)
}

// ValidateUpdate returns what is wrong with s as the successor of old. The address stays while the Service has one.
func ValidateUpdate(s, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	now, was := &s.Spec, &old.Spec
	if needsClusterIP(now) && needsClusterIP(was) {
		errs = append(errs, validateChange(now.ClusterIPs, was.ClusterIPs, now, clusterIPsPath, "clusterIP")...)
		errs = append(errs, validateChange(now.IPFamilies, was.IPFamilies, now, familiesPath, "ipFamily")...)
	}
	if needsHealthCheckPort(now) && needsHealthCheckPort(was) && was.HealthCheckNodePort != 0 &&
		now.HealthCheckNodePort != was.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(specPath.Child("healthCheckNodePort"), "field is immutable"))
	}
	if now.Type == corev1.ServiceTypeLoadBalancer && was.Type == corev1.ServiceTypeLoadBalancer &&
		ptr.Deref(now.LoadBalancerClass, "") != ptr.Deref(was.LoadBalancerClass, "") {
		errs = append(errs, field.Invalid(specPath.Child("loadBalancerClass"), now.LoadBalancerClass,
			"may not change once set"))
	}
	return append(errs, Validate(s)...)
}

// validateChange lets a second entry come and, if one family is asked for, go. The first stays, and so does the second
// while it is there.
func validateChange[V ~string](now, was []V, spec *corev1.ServiceSpec, path *field.Path, what string) field.ErrorList {
	if len(was) == 0 {
		return nil
	}
	for i := range was {
		switch {
		case i < len(now) && now[i] != was[i], i == 0 && len(now) == 0:
			return field.ErrorList{field.Invalid(path.Index(i), now, "may not change once set")}
		case i >= len(now) && ptr.Deref(spec.IPFamilyPolicy, "") != corev1.IPFamilyPolicySingleStack:
			return field.ErrorList{field.Invalid(policyPath, spec.IPFamilyPolicy,
				"must be set to 'SingleStack' when releasing the secondary "+what)}
		}
	}
	return nil
}

func validateAffinity(spec *corev1.ServiceSpec) field.ErrorList {
	path := specPath.Child("sessionAffinity")
	if spec.SessionAffinity == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := fieldcheck.OneOf(spec.SessionAffinity, path, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	config := specPath.Child("sessionAffinityConfig")
	switch {
	case spec.SessionAffinity == corev1.ServiceAffinityNone && spec.SessionAffinityConfig != nil:
		errs = append(errs, field.Forbidden(config, "must not be set when session affinity is None"))
	case spec.SessionAffinity == corev1.ServiceAffinityClientIP:
		errs = append(errs, validateClientIP(spec.SessionAffinityConfig, config.Child("clientIP"))...)
	}
	return errs
}

func validateClientIP(config *corev1.SessionAffinityConfig, path *field.Path) field.ErrorList {
	timeout := path.Child("timeoutSeconds")
	if config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
		return field.ErrorList{field.Required(timeout, "when session affinity type is ClientIP")}
	}
	if seconds := *config.ClientIP.TimeoutSeconds; seconds <= 0 || seconds > maxAffinitySeconds {
		return field.ErrorList{field.Invalid(timeout, seconds, validation.InclusiveRangeError(1, maxAffinitySeconds))}
	}
	return nil
}

func validateByType(spec *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	switch spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		if headless(spec) {
			errs = append(errs, field.Invalid(clusterIPsPath.Index(0), corev1.ClusterIPNone,
				"may not be set to 'None' for "+string(spec.Type)+" services"))
		}
	case corev1.ServiceTypeExternalName:
		if spec.ClusterIP != "" || len(spec.ClusterIPs) > 0 {
			errs = append(errs, field.Forbidden(clusterIPsPath, "may not be set for ExternalName services"))
		}
		path := specPath.Child("externalName")
		name := strings.TrimSuffix(spec.ExternalName, ".")
		if name == "" {
			return append(errs, field.Required(path, ""))
		}
		errs = append(errs, fieldcheck.Messages(spec.ExternalName, path, validation.IsDNS1123Subdomain(name))...)
	}
	return errs
}

func validateClusterIPs(spec *corev1.ServiceSpec) field.ErrorList {
	if len(spec.ClusterIPs) == 0 {
		if spec.ClusterIP != "" {
			return field.ErrorList{field.Required(clusterIPsPath, "must be set when `clusterIP` is")}
		}
		return nil
	}
	var errs field.ErrorList
	if spec.ClusterIP != spec.ClusterIPs[0] {
		errs = append(errs, field.Invalid(clusterIPsPath.Index(0), spec.ClusterIPs[0], "must match `clusterIP`"))
	}
	if len(spec.ClusterIPs) > 2 {
		return append(errs, field.Invalid(clusterIPsPath, spec.ClusterIPs, "may only hold up to 2 values"))
	}
	for i, text := range spec.ClusterIPs {
		errs = append(errs, validateClusterIP(spec, i, text)...)
	}
	return append(errs, validateTwoFamilies(spec)...)
}

func validateClusterIP(spec *corev1.ServiceSpec, i int, text string) field.ErrorList {
	path := clusterIPsPath.Index(i)
	if text == corev1.ClusterIPNone {
		if len(spec.ClusterIPs) > 1 {
			return field.ErrorList{field.Invalid(path, text, "'None' must be the first and only value")}
		}
		return nil
	}
	if errs := validation.IsValidIP(path, text); len(errs) > 0 {
		return errs
	}
	ip, err := netip.ParseAddr(text)
	if err == nil && i < len(spec.IPFamilies) && clusterip.FamilyOf(ip) != spec.IPFamilies[i] {
		return field.ErrorList{field.Invalid(path, text, fmt.Sprintf(
			"expected an %s value as indicated by `ipFamilies[%d]`", spec.IPFamilies[i], i))}
	}
	return nil
}

// validateTwoFamilies wants two addresses to be of one family each.
func validateTwoFamilies(spec *corev1.ServiceSpec) field.ErrorList {
	if len(spec.ClusterIPs) < 2 {
		return nil
	}
	first, firstErr := netip.ParseAddr(spec.ClusterIPs[0])
	second, secondErr := netip.ParseAddr(spec.ClusterIPs[1])
	if firstErr == nil && secondErr == nil && clusterip.FamilyOf(first) == clusterip.FamilyOf(second) {
		return field.ErrorList{field.Invalid(clusterIPsPath, spec.ClusterIPs,
			"may specify no more than one IP for each IP family")}
	}
	return nil
}

func validateFamilies(spec *corev1.ServiceSpec) field.ErrorList {
	if !needsClusterIP(spec) {
		var errs field.ErrorList
		if len(spec.IPFamilies) > 0 {
			errs = append(errs, field.Forbidden(familiesPath, "may not be set for ExternalName services"))
		}
		if spec.IPFamilyPolicy != nil {
			errs = append(errs, field.Forbidden(policyPath, "may not be set for ExternalName services"))
		}
		return errs
	}
	errs := fieldcheck.OneOfPtr(spec.IPFamilyPolicy, policyPath, corev1.IPFamilyPolicyPreferDualStack,
		corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack)
	if len(spec.IPFamilies) > 2 {
		return append(errs, field.Invalid(familiesPath, spec.IPFamilies, "may only hold up to 2 values"))
	}
	for i, family := range spec.IPFamilies {
		errs = append(errs, fieldcheck.OneOf(family, familiesPath.Index(i), corev1.IPv4Protocol,
			corev1.IPv6Protocol)...)
		if i > 0 && family == spec.IPFamilies[0] {
			errs = append(errs, field.Duplicate(familiesPath.Index(i), family))
		}
	}
	return errs
}

func validateTrafficPolicies(spec *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	if spec.InternalTrafficPolicy != nil {
		errs = append(errs, fieldcheck.OneOf(*spec.InternalTrafficPolicy, specPath.Child("internalTrafficPolicy"),
			internalPolicies...)...)
	} else if needsClusterIP(spec) {
		errs = append(errs, field.Required(specPath.Child("internalTrafficPolicy"), ""))
	}
	path := specPath.Child("externalTrafficPolicy")
	switch {
	case !externallyAccessible(spec) && spec.ExternalTrafficPolicy != "":
		errs = append(errs, field.Invalid(path, spec.ExternalTrafficPolicy,
			"may only be set for externally-accessible services"))
	case externallyAccessible(spec) && spec.ExternalTrafficPolicy == "":
		errs = append(errs, field.Required(path, "for externally-accessible services"))
	case externallyAccessible(spec):
		errs = append(errs, fieldcheck.OneOf(spec.ExternalTrafficPolicy, path, externalPolicies...)...)
	}
	if !needsHealthCheckPort(spec) && spec.HealthCheckNodePort != 0 {
		errs = append(errs, field.Invalid(specPath.Child("healthCheckNodePort"), spec.HealthCheckNodePort,
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	if spec.TrafficDistribution != nil {
		errs = append(errs, fieldcheck.OneOf(*spec.TrafficDistribution, specPath.Child("trafficDistribution"),
			trafficDistributions...)...)
	}
	return errs
}

func validateLoadBalancer(spec *corev1.ServiceSpec) field.ErrorList {
	const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'"
	var errs field.ErrorList
	nodePorts, class := specPath.Child("allocateLoadBalancerNodePorts"), specPath.Child("loadBalancerClass")
	ranges := specPath.Child("loadBalancerSourceRanges")
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		if spec.AllocateLoadBalancerNodePorts == nil {
			errs = append(errs, field.Required(nodePorts, ""))
		}
		if spec.LoadBalancerClass != nil {
			errs = append(errs, fieldcheck.Messages(*spec.LoadBalancerClass, class,
				validation.IsQualifiedName(*spec.LoadBalancerClass))...)
		}
		for i, cidr := range spec.LoadBalancerSourceRanges {
			errs = append(errs, validation.IsValidCIDR(ranges.Index(i), strings.TrimSpace(cidr))...)
		}
		return errs
	}
	if spec.AllocateLoadBalancerNodePorts != nil {
		errs = append(errs, field.Forbidden(nodePorts, onlyLoadBalancer))
	}
	if spec.LoadBalancerClass != nil {
		errs = append(errs, field.Forbidden(class, onlyLoadBalancer))
	}
	if len(spec.LoadBalancerSourceRanges) > 0 {
		errs = append(errs, field.Forbidden(ranges, onlyLoadBalancer))
	}
	return errs
}
