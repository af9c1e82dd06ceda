package podspec

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

// ValidatePersistentSource wants exactly one source of a PersistentVolume and checks that one. A source that a Pod may
// name too is checked as there; the others differ from the Pod's by references into other namespaces.
func ValidatePersistentSource(source *corev1.PersistentVolumeSource, fldPath *field.Path) field.ErrorList {
	return exactlyOneSource(source, fldPath, validatePersistentSource)
}

func validatePersistentSource(source any, fldPath *field.Path) field.ErrorList {
	switch source := source.(type) {
	case *corev1.LocalVolumeSource:
		return validateLocal(source, fldPath)
	case *corev1.CSIPersistentVolumeSource:
		return validatePersistentCSI(source, fldPath)
	case *corev1.GlusterfsPersistentVolumeSource:
		errs := requiredFields(fldPath, "endpoints", source.EndpointsName, "path", source.Path)
		return append(errs, fieldcheck.Optional(ptr.Deref(source.EndpointsNamespace, ""),
			fldPath.Child("endpointsNamespace"), validation.IsDNS1123Label)...)
	case *corev1.RBDPersistentVolumeSource:
		return append(nonEmptyList(fldPath.Child("monitors"), source.CephMonitors),
			requiredFields(fldPath, "image", source.RBDImage)...)
	case *corev1.ISCSIPersistentVolumeSource:
		return validatePersistentISCSI(source, fldPath)
	case *corev1.CinderPersistentVolumeSource:
		return append(requiredFields(fldPath, "volumeID", source.VolumeID),
			secretReference(source.SecretRef, fldPath.Child("secretRef"))...)
	case *corev1.CephFSPersistentVolumeSource:
		return nonEmptyList(fldPath.Child("monitors"), source.Monitors)
	case *corev1.FlexPersistentVolumeSource:
		return fieldcheck.Required(source.Driver, fldPath.Child("driver"), validation.IsQualifiedName)
	case *corev1.AzureFilePersistentVolumeSource:
		return requiredFields(fldPath, "secretName", source.SecretName, "shareName", source.ShareName)
	case *corev1.ScaleIOPersistentVolumeSource:
		return requiredFields(fldPath, "gateway", source.Gateway, "system", source.System, "volumeName",
			source.VolumeName)
	case *corev1.StorageOSPersistentVolumeSource:
		return fieldcheck.Required(source.VolumeName, fldPath.Child("volumeName"), validation.IsDNS1123Label)
	}
	return validateSource(source, fldPath)
}

func validateLocal(source *corev1.LocalVolumeSource, fldPath *field.Path) field.ErrorList {
	at := fldPath.Child("path")
	if source.Path == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := append(noBacksteps(source.Path, at), noNUL(source.Path, at)...)
	if !path.IsAbs(source.Path) {
		errs = append(errs, field.Invalid(at, source.Path, "must be an absolute path"))
	}
	return errs
}

func validatePersistentCSI(source *corev1.CSIPersistentVolumeSource, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Required(source.Driver, fldPath.Child("driver"), fieldcheck.DriverName)
	errs = append(errs, requiredFields(fldPath, "volumeHandle", source.VolumeHandle)...)
	for _, secret := range []struct {
		name string
		ref  *corev1.SecretReference
	}{
		{"controllerPublishSecretRef", source.ControllerPublishSecretRef},
		{"controllerExpandSecretRef", source.ControllerExpandSecretRef},
		{"nodePublishSecretRef", source.NodePublishSecretRef},
		{"nodeStageSecretRef", source.NodeStageSecretRef},
		{"nodeExpandSecretRef", source.NodeExpandSecretRef},
	} {
		errs = append(errs, secretReference(secret.ref, fldPath.Child(secret.name))...)
	}
	return errs
}

func validatePersistentISCSI(source *corev1.ISCSIPersistentVolumeSource, fldPath *field.Path) field.ErrorList {
	errs := validateISCSI(&corev1.ISCSIVolumeSource{TargetPortal: source.TargetPortal, IQN: source.IQN,
		Lun: source.Lun},
		fldPath)
	if (source.DiscoveryCHAPAuth || source.SessionCHAPAuth) && source.SecretRef == nil {
		errs = append(errs, field.Required(fldPath.Child("secretRef"), ""))
	}
	if source.SecretRef != nil {
		errs = append(errs, requiredFields(fldPath.Child("secretRef"), "name", source.SecretRef.Name)...)
	}
	return errs
}

// secretReference wants an optional reference to a Secret to be whole.
func secretReference(ref *corev1.SecretReference, fldPath *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	return requiredFields(fldPath, "name", ref.Name, "namespace", ref.Namespace)
}
