package volumeattachment

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podspec"
)

// The API's limits in bytes of what a driver answers.
const (
	maxMetadataBytes = 256 * 1024
	maxMessageBytes  = 1024
)

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
)

// Validate returns what is wrong with an attachment.
func Validate(a *storagev1.VolumeAttachment) field.ErrorList {
	errs := fieldcheck.Required(a.Spec.Attacher, specPath.Child("attacher"), fieldcheck.DriverName)
	errs = append(errs, fieldcheck.Required(a.Spec.NodeName, specPath.Child("nodeName"), fieldcheck.DNSSubdomain)...)
	return append(errs, validateSource(&a.Spec.Source, specPath.Child("source"))...)
}

// validateSource wants a volume by its name, or the spec of one that a Pod has brought; drivers are asked about both.
func validateSource(source *storagev1.VolumeAttachmentSource, path *field.Path) field.ErrorList {
	name, inline := source.PersistentVolumeName, source.InlineVolumeSpec
	switch {
	case name == nil && inline == nil:
		return field.ErrorList{field.Required(path, "must specify exactly one of inlineVolumeSpec and "+
			"persistentVolumeName")}
	case name != nil && inline != nil:
		return field.ErrorList{field.Forbidden(path, "must specify exactly one of inlineVolumeSpec and "+
			"persistentVolumeName")}
	case name != nil:
		return fieldcheck.Required(*name, path.Child("persistentVolumeName"), fieldcheck.DNSSubdomain)
	}
	return validateInline(inline, path.Child("inlineVolumeSpec"))
}

// validateInline allows what a driver needs to attach a volume, and nothing of a claim.
func validateInline(spec *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, unwanted := range []struct {
		name  string
		value any
	}{
		{"claimRef", spec.ClaimRef},
		{"persistentVolumeReclaimPolicy", spec.PersistentVolumeReclaimPolicy},
		{"storageClassName", spec.StorageClassName},
		{"volumeMode", spec.VolumeMode},
		{"nodeAffinity", spec.NodeAffinity},
	} {
		if !reflect.ValueOf(unwanted.value).IsZero() {
			errs = append(errs, field.Forbidden(path.Child(unwanted.name),
				"may not be specified in the context of inline "+
					"volumes"))
		}
	}
	if spec.CSI == nil {
		return append(errs, field.Required(path.Child("csi"), ""))
	}
	return append(errs, podspec.ValidatePersistentSource(&spec.PersistentVolumeSource, path)...)
}

// ValidateUpdate returns what is wrong with a as the successor of old: what is attached where never changes.
func ValidateUpdate(a, old *storagev1.VolumeAttachment) field.ErrorList {
	return append(Validate(a), fieldcheck.Immutable(a.Spec, old.Spec, specPath)...)
}

// ValidateStatusUpdate returns what is wrong with what a driver says.
func ValidateStatusUpdate(a, _ *storagev1.VolumeAttachment) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for key, value := range a.Status.AttachmentMetadata {
		size += len(key) + len(value)
	}
	if size > maxMetadataBytes {
		errs = append(errs, field.TooLong(statusPath.Child("attachmentMetadata"), "", maxMetadataBytes))
	}
	errs = append(errs, validateError(a.Status.AttachError, statusPath.Child("attachError"))...)
	return append(errs, validateError(a.Status.DetachError, statusPath.Child("detachError"))...)
}

func validateError(failure *storagev1.VolumeError, path *field.Path) field.ErrorList {
	if failure == nil {
		return nil
	}
	errs := fieldcheck.AtMostBytes(failure.Message, path.Child("message"), maxMessageBytes)
	return append(errs, fieldcheck.NonNegativePtr(failure.ErrorCode, path.Child("errorCode"))...)
}
