package podspec

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// validateNetworkDisk checks the sources whose drivers were once part of Kubernetes: their fields are part of the
// stable API, whether a node can mount them or not.
func validateNetworkDisk(source any, fldPath *field.Path) field.ErrorList {
	switch source := source.(type) {
	case *corev1.NFSVolumeSource:
		return validateNFS(source, fldPath)
	case *corev1.ISCSIVolumeSource:
		return validateISCSI(source, fldPath)
	case *corev1.FCVolumeSource:
		return validateFibreChannel(source, fldPath)
	case *corev1.RBDVolumeSource:
		return append(nonEmptyList(fldPath.Child("monitors"), source.CephMonitors),
			requiredFields(fldPath, "image", source.RBDImage)...)
	case *corev1.CephFSVolumeSource:
		return nonEmptyList(fldPath.Child("monitors"), source.Monitors)
	case *corev1.GCEPersistentDiskVolumeSource:
		return append(requiredFields(fldPath, "pdName", source.PDName), partition(fldPath, source.Partition)...)
	case *corev1.AWSElasticBlockStoreVolumeSource:
		return append(requiredFields(fldPath, "volumeID", source.VolumeID), partition(fldPath, source.Partition)...)
	case *corev1.GitRepoVolumeSource:
		return append(requiredFields(fldPath, "repository", source.Repository),
			relativePath(source.Directory, fldPath.Child("directory"))...)
	case *corev1.GlusterfsVolumeSource:
		return requiredFields(fldPath, "endpoints", source.EndpointsName, "path", source.Path)
	case *corev1.FlexVolumeSource:
		return fieldcheck.Required(source.Driver, fldPath.Child("driver"), validation.IsQualifiedName)
	case *corev1.CinderVolumeSource:
		return append(requiredFields(fldPath, "volumeID", source.VolumeID), secretName(fldPath, source.SecretRef)...)
	}
	return validateVendorDisk(source, fldPath)
}

func validateVendorDisk(source any, fldPath *field.Path) field.ErrorList {
	switch source := source.(type) {
	case *corev1.FlockerVolumeSource:
		return validateFlocker(source, fldPath)
	case *corev1.AzureFileVolumeSource:
		return requiredFields(fldPath, "secretName", source.SecretName, "shareName", source.ShareName)
	case *corev1.AzureDiskVolumeSource:
		return validateAzureDisk(source, fldPath)
	case *corev1.VsphereVirtualDiskVolumeSource:
		return requiredFields(fldPath, "volumePath", source.VolumePath)
	case *corev1.PhotonPersistentDiskVolumeSource:
		return requiredFields(fldPath, "pdID", source.PdID)
	case *corev1.PortworxVolumeSource:
		return requiredFields(fldPath, "volumeID", source.VolumeID)
	case *corev1.QuobyteVolumeSource:
		return requiredFields(fldPath, "registry", source.Registry, "volume", source.Volume)
	case *corev1.ScaleIOVolumeSource:
		return requiredFields(fldPath, "gateway", source.Gateway, "system", source.System, "volumeName",
			source.VolumeName)
	case *corev1.StorageOSVolumeSource:
		errs := fieldcheck.Required(source.VolumeName, fldPath.Child("volumeName"), validation.IsDNS1123Label)
		errs = append(errs, fieldcheck.Optional(source.VolumeNamespace, fldPath.Child("volumeNamespace"),
			validation.IsDNS1123Label)...)
		return append(errs, secretName(fldPath, source.SecretRef)...)
	}
	return nil
}

func validateNFS(source *corev1.NFSVolumeSource, fldPath *field.Path) field.ErrorList {
	errs := requiredFields(fldPath, "server", source.Server, "path", source.Path)
	if source.Path != "" && !path.IsAbs(source.Path) {
		errs = append(errs, field.Invalid(fldPath.Child("path"), source.Path, "must be an absolute path"))
	}
	return errs
}

func validateISCSI(source *corev1.ISCSIVolumeSource, fldPath *field.Path) field.ErrorList {
	errs := requiredFields(fldPath, "targetPortal", source.TargetPortal, "iqn", source.IQN)
	if source.Lun < 0 || source.Lun > 255 {
		errs = append(errs, field.Invalid(fldPath.Child("lun"), source.Lun, validation.InclusiveRangeError(0, 255)))
	}
	if (source.DiscoveryCHAPAuth || source.SessionCHAPAuth) && source.SecretRef == nil {
		errs = append(errs, field.Required(fldPath.Child("secretRef"), ""))
	}
	return append(errs, secretName(fldPath, source.SecretRef)...)
}

// validateFibreChannel lets a disk be named by its targets and number or by its world wide identifiers, not by both.
func validateFibreChannel(source *corev1.FCVolumeSource, fldPath *field.Path) field.ErrorList {
	switch {
	case len(source.TargetWWNs) == 0 && len(source.WWIDs) == 0:
		return field.ErrorList{field.Required(fldPath.Child("targetWWNs"),
			"must specify either targetWWNs or wwids, but not both")}
	case len(source.TargetWWNs) > 0 && len(source.WWIDs) > 0:
		return field.ErrorList{field.Invalid(fldPath.Child("targetWWNs"), source.TargetWWNs,
			"targetWWNs and wwids can not be specified simultaneously")}
	case len(source.TargetWWNs) > 0 && source.Lun == nil:
		return field.ErrorList{field.Required(fldPath.Child("lun"), "lun is required if targetWWNs is specified")}
	case source.Lun != nil && (*source.Lun < 0 || *source.Lun > 255):
		return field.ErrorList{field.Invalid(fldPath.Child("lun"), *source.Lun, validation.InclusiveRangeError(0, 255))}
	}
	return nil
}

func validateFlocker(source *corev1.FlockerVolumeSource, fldPath *field.Path) field.ErrorList {
	switch {
	case source.DatasetName == "" && source.DatasetUUID == "":
		return field.ErrorList{field.Required(fldPath, "one of datasetName and datasetUUID is required")}
	case source.DatasetName != "" && source.DatasetUUID != "":
		return field.ErrorList{field.Invalid(fldPath, "resource",
			"datasetName and datasetUUID can not be specified simultaneously")}
	}
	return relativePath(source.DatasetName, fldPath.Child("datasetName"))
}

func validateAzureDisk(source *corev1.AzureDiskVolumeSource, fldPath *field.Path) field.ErrorList {
	errs := requiredFields(fldPath, "diskName", source.DiskName, "diskURI", source.DataDiskURI)
	errs = append(errs, fieldcheck.OneOfPtr(source.CachingMode, fldPath.Child("cachingMode"),
		corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)...)
	return append(errs, fieldcheck.OneOfPtr(source.Kind, fldPath.Child("kind"),
		corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk)...)
}

// requiredFields takes the name and value of each field that must be set.
func requiredFields(fldPath *field.Path, namesAndValues ...string) field.ErrorList {
	var errs field.ErrorList
	for i := 0; i < len(namesAndValues); i += 2 {
		errs = append(errs, fieldcheck.Required(namesAndValues[i+1], fldPath.Child(namesAndValues[i]),
			fieldcheck.NotEmpty)...)
	}
	return errs
}

func nonEmptyList(fldPath *field.Path, list []string) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	return nil
}

func partition(fldPath *field.Path, number int32) field.ErrorList {
	if number < 0 || number > 255 {
		return field.ErrorList{field.Invalid(fldPath.Child("partition"), number, validation.InclusiveRangeError(0,
			255))}
	}
	return nil
}

func secretName(fldPath *field.Path, ref *corev1.LocalObjectReference) field.ErrorList {
	if ref == nil {
		return nil
	}
	return fieldcheck.Required(ref.Name, fldPath.Child("secretRef", "name"), fieldcheck.NotEmpty)
}
