package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

func validatePorts(ports []corev1.ContainerPort, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, port := range ports {
		at := fldPath.Index(i)
		if port.Name != "" {
			messages := validation.IsValidPortName(port.Name)
			errs = append(errs, fieldcheck.Messages(port.Name, at.Child("name"), messages)...)
			if len(messages) == 0 && names.Has(port.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		errs = append(errs, validatePort(port, at)...)
	}
	return errs
}

func validatePort(port corev1.ContainerPort, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if port.ContainerPort == 0 {
		errs = append(errs, field.Required(fldPath.Child("containerPort"), ""))
	} else {
		errs = append(errs, fieldcheck.Messages(port.ContainerPort, fldPath.Child("containerPort"),
			validation.IsValidPortNum(int(port.ContainerPort)))...)
	}
	if port.HostPort != 0 {
		errs = append(errs, fieldcheck.Messages(port.HostPort, fldPath.Child("hostPort"),
			validation.IsValidPortNum(int(port.HostPort)))...)
	}
	errs = append(errs, fieldcheck.RequiredOneOf(port.Protocol, fldPath.Child("protocol"),
		corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
	if port.HostIP != "" {
		errs = append(errs, validation.IsValidIPForLegacyField(fldPath.Child("hostIP"), port.HostIP, false, nil)...)
	}
	return errs
}

// hostPortConflicts reports the ports of the host that a container claims although they are taken, and records the
// others as taken.
func hostPortConflicts(ports []corev1.ContainerPort, fldPath *field.Path, taken sets.Set[string]) field.ErrorList {
	var errs field.ErrorList
	for i, port := range ports {
		if port.HostPort == 0 {
			continue
		}
		claim := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
		if taken.Has(claim) {
			errs = append(errs, field.Duplicate(fldPath.Index(i).Child("hostPort"), claim))
		}
		taken.Insert(claim)
	}
	return errs
}

// hostNetworkPorts reports ports that cannot be what they say because there is no network between them and the host. A
// template may leave the host port to the defaults of its Pods.
func hostNetworkPorts(containers []corev1.Container, fldPath *field.Path, opts Options) field.ErrorList {
	var errs field.ErrorList
	for i, c := range containers {
		for j, port := range c.Ports {
			if port.HostPort == port.ContainerPort || (opts.Template && port.HostPort == 0) {
				continue
			}
			errs = append(errs, field.Invalid(fldPath.Index(i).Child("ports").Index(j).Child("containerPort"),
				port.ContainerPort, "must match `hostPort` when `hostNetwork` is true"))
		}
	}
	return errs
}

// portReference checks a port given by number or by the name of a container's port.
func portReference(port intstr.IntOrString, fldPath *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		return fieldcheck.Messages(port.IntValue(), fldPath, validation.IsValidPortNum(port.IntValue()))
	}
	return fieldcheck.Messages(port.StrVal, fldPath, validation.IsValidPortName(port.StrVal))
}
