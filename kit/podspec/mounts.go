package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// validateMounts checks where a container sees the Pod's volumes, as directories and as block devices.
func (s containerScope) validateMounts(c *corev1.Container, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	devices, deviceNames := sets.New[string](), sets.New[string]()
	for i, device := range c.VolumeDevices {
		errs = append(errs, s.validateDevice(device, fldPath.Child("volumeDevices").Index(i), devices, deviceNames)...)
	}
	mounted := sets.New[string]()
	for i := range c.VolumeMounts {
		mount, at := &c.VolumeMounts[i], fldPath.Child("volumeMounts").Index(i)
		errs = append(errs, s.validateMount(mount, c, at)...)
		if mounted.Has(mount.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), mount.MountPath, "must be unique"))
		}
		mounted.Insert(mount.MountPath)
		if deviceNames.Has(mount.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), mount.Name, "must not already exist in volumeDevices"))
		}
		if devices.Has(mount.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), mount.MountPath,
				"must not already exist as a path in volumeDevices"))
		}
	}
	return errs
}

func (s containerScope) validateMount(mount *corev1.VolumeMount, c *corev1.Container,
	fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Required(mount.Name, fldPath.Child("name"), fieldcheck.NotEmpty)
	if _, found := s.volumes[mount.Name]; mount.Name != "" && !found {
		errs = append(errs, field.NotFound(fldPath.Child("name"), mount.Name))
	}
	errs = append(errs, fieldcheck.Required(mount.MountPath, fldPath.Child("mountPath"), fieldcheck.NotEmpty)...)
	errs = append(errs, noNUL(mount.MountPath, fldPath.Child("mountPath"))...)
	errs = append(errs, relativePath(mount.SubPath, fldPath.Child("subPath"))...)
	if mount.SubPathExpr != "" {
		at := fldPath.Child("subPathExpr")
		if mount.SubPath != "" {
			errs = append(errs, field.Invalid(at, mount.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		errs = append(errs, relativePath(mount.SubPathExpr, at)...)
	}
	errs = append(errs, validatePropagation(mount.MountPropagation, c, fldPath.Child("mountPropagation"))...)
	return append(errs, validateRecursiveReadOnly(mount, fldPath.Child("recursiveReadOnly"))...)
}

func validatePropagation(mode *corev1.MountPropagationMode, c *corev1.Container, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.OneOfPtr(mode, fldPath,
		corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
	if mode != nil && *mode == corev1.MountPropagationBidirectional && !isPrivileged(c.SecurityContext) {
		errs = append(errs, field.Forbidden(fldPath,
			"Bidirectional mount propagation is available only to privileged containers"))
	}
	return errs
}

// validateRecursiveReadOnly lets a mount be read-only with all that is mounted below it, if it is read-only at all and
// nothing mounted later appears in it.
func validateRecursiveReadOnly(mount *corev1.VolumeMount, fldPath *field.Path) field.ErrorList {
	mode := mount.RecursiveReadOnly
	errs := fieldcheck.OneOfPtr(mode, fldPath,
		corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible)
	if mode == nil || len(errs) > 0 || *mode == corev1.RecursiveReadOnlyDisabled {
		return errs
	}
	if !mount.ReadOnly {
		errs = append(errs, field.Forbidden(fldPath, "may only be specified when readOnly is true"))
	}
	if mount.MountPropagation != nil && *mount.MountPropagation != corev1.MountPropagationNone {
		errs = append(errs, field.Forbidden(fldPath,
			"may only be specified when mountPropagation is None or not specified"))
	}
	return errs
}

func (s containerScope) validateDevice(device corev1.VolumeDevice, fldPath *field.Path, paths,
	names sets.Set[string]) field.ErrorList {
	errs := fieldcheck.Required(device.Name, fldPath.Child("name"), fieldcheck.NotEmpty)
	volume, found := s.volumes[device.Name]
	switch {
	case device.Name == "":
	case names.Has(device.Name):
		errs = append(errs, field.Invalid(fldPath.Child("name"), device.Name, "must be unique"))
	case !found:
		errs = append(errs, field.NotFound(fldPath.Child("name"), device.Name))
	case volume.PersistentVolumeClaim == nil && volume.Ephemeral == nil:
		errs = append(errs, field.Invalid(fldPath.Child("name"), device.Name,
			"can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
	}
	names.Insert(device.Name)
	at := fldPath.Child("devicePath")
	switch {
	case device.DevicePath == "":
		errs = append(errs, field.Required(at, ""))
	case paths.Has(device.DevicePath):
		errs = append(errs, field.Invalid(at, device.DevicePath, "must be unique"))
	case len(noBacksteps(device.DevicePath, at)) > 0:
		errs = append(errs, field.Invalid(at, device.DevicePath, "can not contain backsteps ('..')"))
	}
	paths.Insert(device.DevicePath)
	return append(errs, noNUL(device.DevicePath, at)...)
}
