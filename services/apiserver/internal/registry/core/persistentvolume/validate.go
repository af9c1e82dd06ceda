package persistentvolume

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podspec"
)

var specPath = field.NewPath("spec")

// Validate returns what is wrong with a defaulted volume.
func Validate(v *corev1.PersistentVolume) field.ErrorList {
	errs := validateSpec(&v.Spec, specPath)
	recycled := v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle
	if disk := v.Spec.HostPath; disk != nil && recycled && path.Clean(disk.Path) == "/" {
		errs = append(errs, field.Forbidden(specPath.Child("persistentVolumeReclaimPolicy"),
			"may not be 'recycle' for a hostPath mount of '/'"))
	}
	return errs
}

// validateSpec checks all but what two fields say together.
func validateSpec(spec *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	errs := podspec.ValidateAccessModes(spec.AccessModes, at.Child("accessModes"))
	errs = append(errs, validateCapacity(spec.Capacity, at.Child("capacity"))...)
	errs = append(errs, podspec.ValidatePersistentSource(&spec.PersistentVolumeSource, at)...)
	errs = append(errs, fieldcheck.OneOf(spec.PersistentVolumeReclaimPolicy, at.Child("persistentVolumeReclaimPolicy"),
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle,
		corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, fieldcheck.Optional(spec.StorageClassName, at.Child("storageClassName"),
		fieldcheck.DNSSubdomain)...)
	errs = append(errs, fieldcheck.OneOfPtr(spec.VolumeMode, at.Child("volumeMode"),
		corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	if class := spec.VolumeAttributesClassName; class != nil {
		errs = append(errs, fieldcheck.Required(*class, at.Child("volumeAttributesClassName"),
			fieldcheck.DNSSubdomain)...)
		if spec.CSI == nil {
			errs = append(errs, field.Required(at.Child("csi"),
				"has to be specified when using volumeAttributesClassName"))
		}
	}
	return append(errs, validateNodeAffinity(spec, at.Child("nodeAffinity"))...)
}

func validateCapacity(capacity corev1.ResourceList, at *field.Path) field.ErrorList {
	storage, set := capacity[corev1.ResourceStorage]
	switch {
	case len(capacity) == 0:
		return field.ErrorList{field.Required(at, "")}
	case !set || len(capacity) > 1:
		return field.ErrorList{field.NotSupported(at, capacity, []corev1.ResourceName{corev1.ResourceStorage})}
	case storage.Sign() <= 0:
		return field.ErrorList{field.Invalid(at.Key("storage"), storage.String(), fieldcheck.MustBePositive)}
	}
	return nil
}

// validateNodeAffinity wants a volume that is part of a node to say of which.
func validateNodeAffinity(spec *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	switch affinity := spec.NodeAffinity; {
	case affinity == nil && spec.Local != nil:
		return field.ErrorList{field.Required(at, "Local volume requires node affinity")}
	case affinity == nil:
		return nil
	case affinity.Required == nil:
		return field.ErrorList{field.Required(at.Child("required"), "must specify required node constraints")}
	}
	return podspec.ValidateNodeSelector(spec.NodeAffinity.Required, at.Child("required"))
}

// ValidateUpdate returns what is wrong with v as the successor of old. Where the storage is never changes, nor the
// nodes from which it can be reached, once they are known.
func ValidateUpdate(v, old *corev1.PersistentVolume) field.ErrorList {
	errs := Validate(v)
	if !equality.Semantic.DeepEqual(v.Spec.PersistentVolumeSource, settledSource(v, old)) {
		errs = append(errs, field.Forbidden(specPath.Child("persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation"))
	}
	errs = append(errs, fieldcheck.Immutable(v.Spec.VolumeMode, old.Spec.VolumeMode, specPath.Child("volumeMode"))...)
	if old.Spec.NodeAffinity != nil {
		errs = append(errs, fieldcheck.Immutable(v.Spec.NodeAffinity, old.Spec.NodeAffinity,
			specPath.Child("nodeAffinity"))...)
	}
	return append(errs, validateAttributesClass(v, old)...)
}

// settledSource is old's source, with what may be given later taken from v: the Secrets with which a driver makes the
// volume larger.
func settledSource(v, old *corev1.PersistentVolume) corev1.PersistentVolumeSource {
	source := *old.Spec.PersistentVolumeSource.DeepCopy()
	if source.CSI == nil || v.Spec.CSI == nil {
		return source
	}
	if source.CSI.ControllerExpandSecretRef == nil {
		source.CSI.ControllerExpandSecretRef = v.Spec.CSI.ControllerExpandSecretRef
	}
	if source.CSI.NodeExpandSecretRef == nil {
		source.CSI.NodeExpandSecretRef = v.Spec.CSI.NodeExpandSecretRef
	}
	return source
}

func validateAttributesClass(v, old *corev1.PersistentVolume) field.ErrorList {
	if old.Spec.VolumeAttributesClassName != nil && v.Spec.VolumeAttributesClassName == nil {
		return field.ErrorList{field.Forbidden(specPath.Child("volumeAttributesClassName"),
			"update from non-nil value to nil is forbidden")}
	}
	return nil
}

// ValidateStatusUpdate wants a phase that volumes have.
func ValidateStatusUpdate(v, _ *corev1.PersistentVolume) field.ErrorList {
	return fieldcheck.OneOf(v.Status.Phase, field.NewPath("status", "phase"), corev1.VolumeAvailable,
		corev1.VolumeBound,
		corev1.VolumeFailed, corev1.VolumePending, corev1.VolumeReleased)
}
