package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// validateClaimStatuses wants what is said of the Pod's claims of devices to be of those, once of each.
func validateClaimStatuses(statuses []corev1.PodResourceClaimStatus, claims []corev1.PodResourceClaim,
	fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	said := map[string]bool{}
	for i, status := range statuses {
		at := fldPath.Index(i).Child("name")
		if !slices.ContainsFunc(claims, func(c corev1.PodResourceClaim) bool { return c.Name == status.Name }) {
			errs = append(errs, field.Invalid(at, status.Name,
				"must match the name of an entry in `spec.resourceClaims`"))
		}
		if said[status.Name] {
			errs = append(errs, field.Duplicate(at, status.Name))
		}
		said[status.Name] = true
		if name := status.ResourceClaimName; name != nil {
			errs = append(errs, fieldcheck.Messages(*name, fldPath.Index(i).Child("resourceClaimName"),
				fieldcheck.DNSSubdomain(*name))...)
		}
	}
	return errs
}
