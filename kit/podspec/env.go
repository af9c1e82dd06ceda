package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

func (s containerScope) validateEnv(vars []corev1.EnvVar, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range vars {
		at := fldPath.Index(i)
		errs = append(errs, fieldcheck.Required(vars[i].Name, at.Child("name"), validation.IsRelaxedEnvVarName)...)
		errs = append(errs, noNUL(vars[i].Value, at.Child("value"))...)
		errs = append(errs, s.validateEnvSource(&vars[i], at.Child("valueFrom"))...)
	}
	return errs
}

func (s containerScope) validateEnvSource(env *corev1.EnvVar, fldPath *field.Path) field.ErrorList {
	source := env.ValueFrom
	if source == nil {
		return nil
	}
	var errs field.ErrorList
	count := 0
	check := func(set bool, run func() field.ErrorList) {
		if set {
			count++
			errs = append(errs, run()...)
		}
	}
	check(source.FieldRef != nil, func() field.ErrorList {
		return validateFieldRef(source.FieldRef, fldPath.Child("fieldRef"), envFields)
	})
	check(source.ResourceFieldRef != nil, func() field.ErrorList {
		return validateResourceRef(source.ResourceFieldRef, fldPath.Child("resourceFieldRef"), false)
	})
	check(source.ConfigMapKeyRef != nil, func() field.ErrorList {
		ref := source.ConfigMapKeyRef
		return validateKeyRef(ref.Name, ref.Key, fldPath.Child("configMapKeyRef"))
	})
	check(source.SecretKeyRef != nil, func() field.ErrorList {
		ref := source.SecretKeyRef
		return validateKeyRef(ref.Name, ref.Key, fldPath.Child("secretKeyRef"))
	})
	check(source.FileKeyRef != nil, func() field.ErrorList {
		return s.validateFileKeyRef(source.FileKeyRef, fldPath.Child("fileKeyRef"))
	})
	switch {
	case count == 0:
		errs = append(errs, field.Invalid(fldPath, "",
			"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case env.Value != "":
		errs = append(errs, field.Invalid(fldPath, "", "may not be specified when `value` is not empty"))
	case count > 1:
		errs = append(errs, field.Invalid(fldPath, "", onlyOneField))
	}
	return errs
}

func validateKeyRef(name, key string, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Messages(name, fldPath.Child("name"), fieldcheck.DNSSubdomain(name))
	return append(errs, fieldcheck.Required(key, fldPath.Child("key"), validation.IsConfigMapKey)...)
}

// validateFileKeyRef checks a variable that a container's file supplies: the file lies in one of the Pod's empty
// directories, where an init container has written it.
func (s containerScope) validateFileKeyRef(ref *corev1.FileKeySelector, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Required(ref.Key, fldPath.Child("key"), validation.IsRelaxedEnvVarName)
	errs = append(errs, projectedFile(ref.Path, fldPath.Child("path"))...)
	volume, found := s.volumes[ref.VolumeName]
	switch {
	case ref.VolumeName == "":
		errs = append(errs, field.Required(fldPath.Child("volumeName"), ""))
	case !found:
		errs = append(errs, field.NotFound(fldPath.Child("volumeName"), ref.VolumeName))
	case volume.EmptyDir == nil:
		errs = append(errs, field.Invalid(fldPath.Child("volumeName"), ref.VolumeName, "must be an emptyDir volume"))
	}
	return errs
}

func validateEnvFrom(sources []corev1.EnvFromSource, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, source := range sources {
		at := fldPath.Index(i)
		errs = append(errs, fieldcheck.Optional(source.Prefix, at.Child("prefix"), validation.IsRelaxedEnvVarName)...)
		if ref := source.ConfigMapRef; ref != nil {
			errs = append(errs, fieldcheck.Required(ref.Name, at.Child("configMapRef").Child("name"),
				fieldcheck.DNSSubdomain)...)
		}
		if ref := source.SecretRef; ref != nil {
			errs = append(errs, fieldcheck.Required(ref.Name, at.Child("secretRef").Child("name"),
				fieldcheck.DNSSubdomain)...)
		}
		switch {
		case source.ConfigMapRef == nil && source.SecretRef == nil:
			errs = append(errs, field.Invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"))
		case source.ConfigMapRef != nil && source.SecretRef != nil:
			errs = append(errs, field.Invalid(at, "", onlyOneField))
		}
	}
	return errs
}
