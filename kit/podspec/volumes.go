package podspec

import (
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// validateVolumes checks the Pod's volumes and returns what containers may mount, by name.
func validateVolumes(volumes []corev1.Volume, fldPath *field.Path) (map[string]corev1.VolumeSource, field.ErrorList) {
	var errs field.ErrorList
	byName := make(map[string]corev1.VolumeSource, len(volumes))
	for i := range volumes {
		volume, at := &volumes[i], fldPath.Index(i)
		errs = append(errs, fieldcheck.Required(volume.Name, at.Child("name"), validation.IsDNS1123Label)...)
		if _, taken := byName[volume.Name]; taken && volume.Name != "" {
			errs = append(errs, field.Duplicate(at.Child("name"), volume.Name))
		}
		errs = append(errs, validateVolumeSource(&volume.VolumeSource, at)...)
		byName[volume.Name] = volume.VolumeSource
	}
	return byName, errs
}

// validateVolumeSource wants exactly one source and checks that one.
func validateVolumeSource(source *corev1.VolumeSource, fldPath *field.Path) field.ErrorList {
	return exactlyOneSource(source, fldPath, validateSource)
}

// exactlyOneSource wants one of the fields of sources, a pointer to a struct of pointers, and checks that one.
func exactlyOneSource(sources any, fldPath *field.Path,
	check func(source any, fldPath *field.Path) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	chosen := false
	value := reflect.ValueOf(sources).Elem()
	for i := range value.NumField() {
		if value.Field(i).IsNil() {
			continue
		}
		at := fldPath.Child(jsonName(value.Type().Field(i)))
		if chosen {
			errs = append(errs, field.Forbidden(at, "may not specify more than 1 volume type"))
			continue
		}
		chosen = true
		errs = append(errs, check(value.Field(i).Interface(), at)...)
	}
	if !chosen {
		errs = append(errs, field.Required(fldPath, "must specify a volume type"))
	}
	return errs
}

// validateSource checks the sources that need no driver of a vendor; validateNetworkDisk knows those.
func validateSource(source any, fldPath *field.Path) field.ErrorList {
	switch source := source.(type) {
	case *corev1.EmptyDirVolumeSource:
		return validateEmptyDir(source, fldPath)
	case *corev1.HostPathVolumeSource:
		return validateHostPath(source, fldPath)
	case *corev1.SecretVolumeSource:
		errs := fieldcheck.Required(source.SecretName, fldPath.Child("secretName"), fieldcheck.NotEmpty)
		errs = append(errs, fileMode(source.DefaultMode, fldPath.Child("defaultMode"))...)
		return append(errs, validateKeys(source.Items, fldPath.Child("items"))...)
	case *corev1.ConfigMapVolumeSource:
		errs := fieldcheck.Required(source.Name, fldPath.Child("name"), fieldcheck.NotEmpty)
		errs = append(errs, fileMode(source.DefaultMode, fldPath.Child("defaultMode"))...)
		return append(errs, validateKeys(source.Items, fldPath.Child("items"))...)
	case *corev1.DownwardAPIVolumeSource:
		errs := fileMode(source.DefaultMode, fldPath.Child("defaultMode"))
		return append(errs, validateDownwardFiles(source.Items, fldPath.Child("items"))...)
	case *corev1.ProjectedVolumeSource:
		return validateProjected(source, fldPath)
	case *corev1.PersistentVolumeClaimVolumeSource:
		return fieldcheck.Required(source.ClaimName, fldPath.Child("claimName"), fieldcheck.DNSSubdomain)
	case *corev1.EphemeralVolumeSource:
		return validateEphemeralVolume(source, fldPath)
	case *corev1.ImageVolumeSource:
		return validateImageVolume(source, fldPath)
	case *corev1.CSIVolumeSource:
		return validateCSI(source, fldPath)
	}
	return validateNetworkDisk(source, fldPath)
}

func validateEmptyDir(source *corev1.EmptyDirVolumeSource, fldPath *field.Path) field.ErrorList {
	if source.SizeLimit != nil && source.SizeLimit.Sign() < 0 {
		return field.ErrorList{field.Forbidden(fldPath.Child("sizeLimit"),
			"SizeLimit field must be a valid resource quantity")}
	}
	return nil
}

func validateHostPath(source *corev1.HostPathVolumeSource, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Required(source.Path, fldPath.Child("path"), fieldcheck.NotEmpty)
	errs = append(errs, noBacksteps(source.Path, fldPath.Child("path"))...)
	errs = append(errs, noNUL(source.Path, fldPath.Child("path"))...)
	return append(errs, fieldcheck.OneOfPtr(source.Type, fldPath.Child("type"),
		corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
		corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket)...)
}

func validateKeys(items []corev1.KeyToPath, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		at := fldPath.Index(i)
		errs = append(errs, fieldcheck.Required(item.Key, at.Child("key"), fieldcheck.NotEmpty)...)
		errs = append(errs, projectedFile(item.Path, at.Child("path"))...)
		errs = append(errs, fileMode(item.Mode, at.Child("mode"))...)
	}
	return errs
}

func validateDownwardFiles(items []corev1.DownwardAPIVolumeFile, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		at := fldPath.Index(i)
		errs = append(errs, projectedFile(item.Path, at.Child("path"))...)
		errs = append(errs, fileMode(item.Mode, at.Child("mode"))...)
		if item.FieldRef != nil {
			errs = append(errs, validateFieldRef(item.FieldRef, at.Child("fieldRef"), fileFields)...)
		}
		if item.ResourceFieldRef != nil {
			errs = append(errs, validateResourceRef(item.ResourceFieldRef, at.Child("resourceFieldRef"), true)...)
		}
		switch {
		case item.FieldRef == nil && item.ResourceFieldRef == nil:
			errs = append(errs, field.Required(at, "one of fieldRef and resourceFieldRef is required"))
		case item.FieldRef != nil && item.ResourceFieldRef != nil:
			errs = append(errs, field.Invalid(at, "resource",
				"fieldRef and resourceFieldRef can not be specified simultaneously"))
		}
	}
	return errs
}

// validateEphemeralVolume checks the claim that will be made for the Pod. Its metadata may only label it.
func validateEphemeralVolume(source *corev1.EphemeralVolumeSource, fldPath *field.Path) field.ErrorList {
	at := fldPath.Child("volumeClaimTemplate")
	template := source.VolumeClaimTemplate
	if template == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := metav1validation.ValidateLabels(template.Labels, at.Child("metadata", "labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations, at.Child("metadata", "annotations"))...)
	meta := reflect.ValueOf(template.ObjectMeta)
	for i := range meta.NumField() {
		name := jsonName(meta.Type().Field(i))
		if name != "labels" && name != "annotations" && !meta.Field(i).IsZero() {
			errs = append(errs, field.Forbidden(at.Child("metadata", name), "cannot be set for an ephemeral volume"))
		}
	}
	return append(errs, ValidateClaimSpec(&template.Spec, at.Child("spec"))...)
}

func validateImageVolume(source *corev1.ImageVolumeSource, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Required(source.Reference, fldPath.Child("reference"), fieldcheck.NotEmpty)
	if source.Reference != strings.TrimSpace(source.Reference) {
		errs = append(errs, field.Invalid(fldPath.Child("reference"), source.Reference,
			"must not have leading or trailing whitespace"))
	}
	return append(errs, fieldcheck.RequiredOneOf(source.PullPolicy, fldPath.Child("pullPolicy"),
		corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
}

func validateCSI(source *corev1.CSIVolumeSource, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Required(source.Driver, fldPath.Child("driver"), fieldcheck.DriverName)
	if ref := source.NodePublishSecretRef; ref != nil {
		errs = append(errs, fieldcheck.Required(ref.Name, fldPath.Child("nodePublishSecretRef", "name"),
			fieldcheck.DNSSubdomain)...)
	}
	return errs
}

// pathTaken records a file of a projected volume and reports whether it, or a file above or below it, was there before.
func pathTaken(file string, taken *[]string) bool {
	clean := path.Clean(file)
	conflict := slices.ContainsFunc(*taken, func(other string) bool {
		return clean == other || strings.HasPrefix(clean, other+"/") || strings.HasPrefix(other, clean+"/")
	})
	*taken = append(*taken, clean)
	return conflict
}
