package podspec

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ephemeralFields are the only fields of a container that an ephemeral one may set.
var ephemeralFields = sets.New(
	"Name", "Image", "Command", "Args", "WorkingDir", "EnvFrom", "Env", "VolumeMounts", "VolumeDevices",
	"TerminationMessagePath", "TerminationMessagePolicy", "ImagePullPolicy", "SecurityContext",
	"Stdin", "StdinOnce", "TTY",
)

func (s containerScope) validateEphemeralContainers(fldPath *field.Path, opts Options) field.ErrorList {
	if opts.Template && len(s.spec.EphemeralContainers) > 0 {
		return field.ErrorList{field.Forbidden(fldPath, "ephemeral containers not allowed in pod template")}
	}
	var errs field.ErrorList
	targets := sets.New[string]()
	eachContainer(s.spec, func(c *corev1.Container) { targets.Insert(c.Name) })
	names := targets.Clone()
	for i := range s.spec.EphemeralContainers {
		ephemeral, at := &s.spec.EphemeralContainers[i], fldPath.Index(i)
		c := corev1.Container(ephemeral.EphemeralContainerCommon)
		errs = append(errs, validateContainerName(c.Name, at, names)...)
		errs = append(errs, s.validateContainer(&c, at)...)
		errs = append(errs, forbidOnEphemeral(&c, at)...)
		if target := ephemeral.TargetContainerName; target != "" && !targets.Has(target) {
			errs = append(errs, field.NotFound(at.Child("targetContainerName"), target))
		}
	}
	return errs
}

// forbidOnEphemeral refuses every set field outside ephemeralFields, so that a field added to the API is refused until
// it is known to fit.
func forbidOnEphemeral(c *corev1.Container, fldPath *field.Path) field.ErrorList {
	const detail = "cannot be set for an Ephemeral Container"
	var errs field.ErrorList
	value := reflect.ValueOf(*c)
	for _, f := range reflect.VisibleFields(value.Type()) {
		if !ephemeralFields.Has(f.Name) && !value.FieldByIndex(f.Index).IsZero() {
			errs = append(errs, field.Forbidden(fldPath.Child(jsonName(f)), detail))
		}
	}
	for i, mount := range c.VolumeMounts {
		at := fldPath.Child("volumeMounts").Index(i)
		if mount.SubPath != "" {
			errs = append(errs, field.Forbidden(at.Child("subPath"), detail))
		}
		if mount.SubPathExpr != "" {
			errs = append(errs, field.Forbidden(at.Child("subPathExpr"), detail))
		}
	}
	return errs
}
