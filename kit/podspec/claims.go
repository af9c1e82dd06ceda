package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

// ValidateClaimSpec checks the spec of a PersistentVolumeClaim, also where it stands in a template.
func ValidateClaimSpec(spec *corev1.PersistentVolumeClaimSpec, fldPath *field.Path) field.ErrorList {
	errs := ValidateAccessModes(spec.AccessModes, fldPath.Child("accessModes"))
	if spec.Selector != nil {
		errs = append(errs, fieldcheck.LabelSelector(spec.Selector, fldPath.Child("selector"))...)
	}
	at := fldPath.Child("resources").Key(string(corev1.ResourceStorage))
	switch storage, set := spec.Resources.Requests[corev1.ResourceStorage]; {
	case !set:
		errs = append(errs, field.Required(at, ""))
	case storage.Sign() <= 0:
		errs = append(errs, field.Invalid(at, storage.String(), fieldcheck.MustBePositive))
	}
	if name := spec.StorageClassName; name != nil && *name != "" {
		errs = append(errs, fieldcheck.Messages(*name, fldPath.Child("storageClassName"),
			fieldcheck.DNSSubdomain(*name))...)
	}
	errs = append(errs, fieldcheck.OneOfPtr(spec.VolumeMode, fldPath.Child("volumeMode"),
		corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	if class := spec.VolumeAttributesClassName; class != nil {
		errs = append(errs, fieldcheck.Optional(*class, fldPath.Child("volumeAttributesClassName"),
			fieldcheck.DNSSubdomain)...)
	}
	return append(errs, validateDataSources(spec, fldPath)...)
}

// validateDataSources checks what the volume is filled from. Both fields say the same, unless the object is in another
// namespace, which only the reference can say.
func validateDataSources(spec *corev1.PersistentVolumeClaimSpec, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	source, ref, at := spec.DataSource, spec.DataSourceRef, fldPath.Child("dataSource")
	if ref != nil {
		errs = validateDataSource(ref, fldPath.Child("dataSourceRef"))
	}
	if source == nil {
		return errs
	}
	local := corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	errs = append(errs, validateDataSource(&local, at)...)
	switch {
	case ref == nil:
	case ptr.Deref(ref.Namespace, "") != "":
		errs = append(errs, field.Forbidden(at, "may not be specified when dataSourceRef.namespace is specified"))
	case ptr.Deref(source.APIGroup, "") != ptr.Deref(ref.APIGroup, ""), source.Kind != ref.Kind,
		source.Name != ref.Name:
		errs = append(errs, field.Invalid(at, source.Kind+"/"+source.Name, "must match dataSourceRef"))
	}
	return errs
}

// validateDataSource wants a claim, or an object of a group other than the core's.
func validateDataSource(source *corev1.TypedObjectReference, fldPath *field.Path) field.ErrorList {
	errs := requiredFields(fldPath, "name", source.Name, "kind", source.Kind)
	group := ptr.Deref(source.APIGroup, "")
	if group == "" && source.Kind != "PersistentVolumeClaim" {
		errs = append(errs, field.Invalid(fldPath, source.Kind,
			"must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
	}
	return append(errs, fieldcheck.Optional(group, fldPath.Child("apiGroup"), validation.IsDNS1123Subdomain)...)
}

// ValidateAccessModes checks how a volume may be mounted, or how a claim wants to mount it.
func ValidateAccessModes(modes []corev1.PersistentVolumeAccessMode, fldPath *field.Path) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(fldPath, "at least 1 access mode is required")}
	}
	var errs field.ErrorList
	for i, mode := range modes {
		errs = append(errs, fieldcheck.OneOf(mode, fldPath.Index(i),
			corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)...)
	}
	if len(modes) > 1 && sets.New(modes...).Has(corev1.ReadWriteOncePod) {
		errs = append(errs, field.Forbidden(fldPath, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

// validateResourceClaims checks the devices that the Pod claims and returns the names its containers may use.
func validateResourceClaims(claims []corev1.PodResourceClaim, fldPath *field.Path) (sets.Set[string], field.ErrorList) {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, claim := range claims {
		at := fldPath.Index(i)
		if names.Has(claim.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), claim.Name))
		}
		names.Insert(claim.Name)
		errs = append(errs, fieldcheck.Required(claim.Name, at.Child("name"), validation.IsDNS1123Label)...)
		switch {
		case claim.ResourceClaimName != nil && claim.ResourceClaimTemplateName != nil:
			errs = append(errs, field.Invalid(at, claim.Name,
				"at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
		case claim.ResourceClaimName == nil && claim.ResourceClaimTemplateName == nil:
			errs = append(errs, field.Invalid(at, claim.Name,
				"must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		}
		if name := claim.ResourceClaimName; name != nil {
			errs = append(errs, fieldcheck.Messages(*name, at.Child("resourceClaimName"),
				fieldcheck.DNSSubdomain(*name))...)
		}
		if name := claim.ResourceClaimTemplateName; name != nil {
			errs = append(errs, fieldcheck.Messages(*name, at.Child("resourceClaimTemplateName"),
				fieldcheck.DNSSubdomain(*name))...)
		}
	}
	return names, errs
}
