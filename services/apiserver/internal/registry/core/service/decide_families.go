package service

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/clusterip"
)

var (
	familiesPath = specPath.Child("ipFamilies")
	policyPath   = specPath.Child("ipFamilyPolicy")
)

// settleFamilies fills in which families the Service has, as far as the client leaves it open, out of those of the
// cluster, the first of which is the default. old is nil for a new Service.
func settleFamilies(s, old *corev1.Service, cluster []corev1.IPFamily) field.ErrorList {
	spec := &s.Spec
	if !needsClusterIP(spec) || old != nil && keepsFamilies(spec, &old.Spec) {
		return nil
	}
	if errs := familiesOfIPs(spec, cluster); len(errs) > 0 {
		return errs
	}
	anywhere := headless(spec) && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = ptr.To(impliedPolicy(spec, anywhere))
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{cluster[0]}
	}
	single := *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	// Who writes the endpoints of a headless Service without a selector may use families that the cluster has not.
	if !anywhere {
		if errs := checkFamilies(spec, cluster); len(errs) > 0 {
			return errs
		}
	}
	if !single && len(spec.IPFamilies) == 1 && (anywhere || len(cluster) > 1) {
		spec.IPFamilies = append(spec.IPFamilies, otherFamily(spec.IPFamilies[0]))
	}
	return nil
}

// impliedPolicy is what the client means that says nothing about the policy.
func impliedPolicy(spec *corev1.ServiceSpec, anywhere bool) corev1.IPFamilyPolicy {
	if anywhere || len(spec.ClusterIPs) > 1 || len(spec.IPFamilies) > 1 {
		return corev1.IPFamilyPolicyRequireDualStack
	}
	return corev1.IPFamilyPolicySingleStack
}

// keepsFamilies reports whether a write to a Service that prefers two families requests no change of them: the Service
// neither gains nor loses a family by a write about something else after the cluster did.
func keepsFamilies(now, was *corev1.ServiceSpec) bool {
	const prefer = corev1.IPFamilyPolicyPreferDualStack
	return ptr.Deref(now.IPFamilyPolicy, "") == prefer && ptr.Deref(was.IPFamilyPolicy, "") == prefer &&
		needsClusterIP(was) && slices.Equal(now.ClusterIPs, was.ClusterIPs) &&
		slices.Equal(now.IPFamilies, was.IPFamilies)
}

// familiesOfIPs adds the families of the addresses that are asked for.
func familiesOfIPs(spec *corev1.ServiceSpec, cluster []corev1.IPFamily) field.ErrorList {
	for i := len(spec.IPFamilies); i < len(spec.ClusterIPs); i++ {
		ip, err := netip.ParseAddr(spec.ClusterIPs[i])
		if err != nil {
			// None, or what the validation refuses.
			return nil
		}
		family := clusterip.FamilyOf(ip)
		if !slices.Contains(cluster, family) {
			return field.ErrorList{field.Invalid(clusterIPsPath.Index(i), spec.ClusterIPs[i],
				string(family)+" is not configured on this cluster")}
		}
		spec.IPFamilies = append(spec.IPFamilies, family)
	}
	return nil
}

// checkFamilies returns what the cluster cannot give.
func checkFamilies(spec *corev1.ServiceSpec, cluster []corev1.IPFamily) field.ErrorList {
	const several = "must be RequireDualStack or PreferDualStack when multiple "
	var errs field.ErrorList
	policy := *spec.IPFamilyPolicy
	if policy == corev1.IPFamilyPolicySingleStack {
		if len(spec.IPFamilies) > 1 {
			errs = append(errs, field.Invalid(policyPath, policy, several+"ipFamilies are specified"))
		}
		if len(spec.ClusterIPs) > 1 {
			errs = append(errs, field.Invalid(policyPath, policy, several+"clusterIPs are specified"))
		}
	}
	if policy == corev1.IPFamilyPolicyRequireDualStack && len(cluster) < 2 {
		errs = append(errs, field.Invalid(policyPath, policy,
			"this cluster is not configured for dual-stack services"))
	}
	for i, family := range spec.IPFamilies {
		if (family == corev1.IPv4Protocol || family == corev1.IPv6Protocol) && !slices.Contains(cluster, family) {
			errs = append(errs, field.Invalid(familiesPath.Index(i), family, "not configured on this cluster"))
		}
	}
	return errs
}

func otherFamily(family corev1.IPFamily) corev1.IPFamily {
	if family == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// dropSecondFamily takes the second address and family from a Service that is to have one from now on, unless the
// client says something about them.
func dropSecondFamily(now, was *corev1.ServiceSpec) {
	const single = corev1.IPFamilyPolicySingleStack
	if ptr.Deref(now.IPFamilyPolicy, "") != single || ptr.Deref(was.IPFamilyPolicy, single) == single {
		return
	}
	if len(was.ClusterIPs) > 1 && slices.Equal(now.ClusterIPs, was.ClusterIPs) {
		now.ClusterIPs = now.ClusterIPs[:1]
	}
	if len(was.IPFamilies) > 1 && slices.Equal(now.IPFamilies, was.IPFamilies) {
		now.IPFamilies = now.IPFamilies[:1]
	}
}
