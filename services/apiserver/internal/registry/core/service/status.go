package service

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

var ipModes = []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP}

// ValidateStatusUpdate returns what is wrong with a Service's status: with the addresses that Pods and nodes are led
// to. Conditions are their writer's own.
func ValidateStatusUpdate(s, _ *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status", "loadBalancer", "ingress")
	for i := range s.Status.LoadBalancer.Ingress {
		errs = append(errs, validateIngress(&s.Status.LoadBalancer.Ingress[i], path.Index(i))...)
	}
	return errs
}

func validateIngress(ingress *corev1.LoadBalancerIngress, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ingress.IP != "" {
		errs = append(errs, validation.IsValidIP(path.Child("ip"), ingress.IP)...)
		if ingress.IPMode == nil {
			errs = append(errs, field.Required(path.Child("ipMode"), "must be specified when `ip` is set"))
		}
	} else if ingress.IPMode != nil {
		errs = append(errs, field.Forbidden(path.Child("ipMode"), "may not be specified when `ip` is not set"))
	}
	if ingress.IPMode != nil {
		errs = append(errs, fieldcheck.OneOf(*ingress.IPMode, path.Child("ipMode"), ipModes...)...)
	}
	if ingress.Hostname != "" {
		errs = append(errs, fieldcheck.Messages(ingress.Hostname, path.Child("hostname"),
			validation.IsDNS1123Subdomain(ingress.Hostname))...)
		if len(validation.IsValidIP(nil, ingress.Hostname)) == 0 {
			errs = append(errs, field.Invalid(path.Child("hostname"), ingress.Hostname,
				"must be a DNS name, not an IP address"))
		}
	}
	return errs
}
