package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"keelson.dev/kit/podview"
)

// agreeOnIPs makes each single address and the list that has it first say the same. The single address wins, because
// older clients write it alone.
func agreeOnIPs(status *corev1.PodStatus) {
	if ip := status.PodIP; ip != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != ip) {
		status.PodIPs = []corev1.PodIP{{IP: ip}}
	}
	if len(status.PodIPs) > 0 {
		status.PodIP = status.PodIPs[0].IP
	}
	if ip := status.HostIP; ip != "" && (len(status.HostIPs) == 0 || status.HostIPs[0].IP != ip) {
		status.HostIPs = []corev1.HostIP{{IP: ip}}
	}
	if len(status.HostIPs) > 0 {
		status.HostIP = status.HostIPs[0].IP
	}
}

// dropUnservedStatus leaves out what alpha features report, which are off, as podspec.DropUnserved does with what they
// are asked for.
func dropUnservedStatus(status *corev1.PodStatus) {
	status.NodeAllocatableResourceClaimStatuses, status.VolumeHealth = nil, nil
	for _, containers := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses,
		status.EphemeralContainerStatuses} {
		for i := range containers {
			containers[i].StopSignal = nil
		}
	}
}

var statusPath = field.NewPath("status")

// ValidateStatusUpdate checks a changed status: that it says what it can say, and that the Pod only moves forward.
func ValidateStatusUpdate(p, old *corev1.Pod) field.ErrorList {
	status := &p.Status
	errs := validateAnnotationsUpdate(p, old)
	errs = append(errs, validatePhase(status.Phase, old.Status.Phase, statusPath.Child("phase"))...)
	errs = append(errs, validateConditions(status.Conditions, statusPath.Child("conditions"))...)
	if name := status.NominatedNodeName; name != "" {
		for _, message := range apivalidation.NameIsDNSSubdomain(name, false) {
			errs = append(errs, field.Invalid(statusPath.Child("nominatedNodeName"), name, message))
		}
	}
	errs = append(errs, apivalidation.ValidateNonnegativeField(status.ObservedGeneration,
		statusPath.Child("observedGeneration"))...)
	errs = append(errs, validateRestarts(p, old)...)
	errs = append(errs, validateClaimStatuses(status.ResourceClaimStatuses, p.Spec.ResourceClaims,
		statusPath.Child("resourceClaimStatuses"))...)
	podIPs, hostIPs := make([]string, 0, len(status.PodIPs)), make([]string, 0, len(status.HostIPs))
	for _, ip := range status.PodIPs {
		podIPs = append(podIPs, ip.IP)
	}
	for _, ip := range status.HostIPs {
		hostIPs = append(hostIPs, ip.IP)
	}
	errs = append(errs, validateIPs(podIPs, statusPath.Child("podIPs"))...)
	return append(errs, validateIPs(hostIPs, statusPath.Child("hostIPs"))...)
}

var phases = []corev1.PodPhase{corev1.PodFailed, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded,
	corev1.PodUnknown}

func validatePhase(phase, old corev1.PodPhase, fldPath *field.Path) field.ErrorList {
	if !slices.Contains(phases, phase) {
		return field.ErrorList{field.NotSupported(fldPath, phase, phases)}
	}
	if isTerminal(old) && phase != old {
		return field.ErrorList{field.Forbidden(fldPath, fmt.Sprintf("a Pod that has %s may not become %s", old, phase))}
	}
	return nil
}

var conditionStatuses = []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}

func validateConditions(conditions []corev1.PodCondition, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, condition := range conditions {
		if !slices.Contains(conditionStatuses, condition.Status) {
			errs = append(errs, field.NotSupported(fldPath.Index(i).Child("status"), condition.Status,
				conditionStatuses))
		}
		if condition.Type == "" {
			errs = append(errs, field.Required(fldPath.Index(i).Child("type"), ""))
		}
		errs = append(errs, apivalidation.ValidateNonnegativeField(condition.ObservedGeneration,
			fldPath.Index(i).Child("observedGeneration"))...)
	}
	return errs
}

// validateRestarts refuses to take a container back from its end if it is not restarted. Where a rule may restart all
// containers of the Pod, none has ended for good.
func validateRestarts(p, old *corev1.Pod) field.ErrorList {
	if podview.MayRestartAll(&p.Spec) {
		return nil
	}
	errs := refuseRestarts(p.Status.ContainerStatuses, old.Status.ContainerStatuses, p.Spec.RestartPolicy,
		p.Spec.Containers, statusPath.Child("containerStatuses"))
	return append(errs, refuseRestarts(p.Status.InitContainerStatuses, old.Status.InitContainerStatuses,
		p.Spec.RestartPolicy, p.Spec.InitContainers, statusPath.Child("initContainerStatuses"))...)
}

func refuseRestarts(statuses, old []corev1.ContainerStatus, policy corev1.RestartPolicy, containers []corev1.Container,
	fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, before := range old {
		ended := before.State.Terminated
		if ended == nil || podview.Restarts(policy, containerNamed(containers, before.Name), ended.ExitCode) {
			continue
		}
		for i, after := range statuses {
			if after.Name == before.Name && after.State.Terminated == nil {
				errs = append(errs, field.Forbidden(fldPath.Index(i).Child("state"),
					"may not be transitioned to non-terminated state"))
			}
		}
	}
	return errs
}

// containerNamed returns the container of that name, and one that says nothing where there is none.
func containerNamed(all []corev1.Container, name string) *corev1.Container {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return &corev1.Container{}
}

// validateIPs wants valid addresses, at most one of each family.
func validateIPs(ips []string, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	families := map[netutils.IPFamily]int{}
	for i, ip := range ips {
		errs = append(errs, validation.IsValidIPForLegacyField(fldPath.Index(i), ip, false, nil)...)
		families[netutils.IPFamilyOfString(ip)]++
	}
	if len(ips) > 2 || families[netutils.IPv4] > 1 || families[netutils.IPv6] > 1 {
		errs = append(errs, field.Invalid(fldPath, ips, "may specify no more than one IP for each IP family"))
	}
	return errs
}
