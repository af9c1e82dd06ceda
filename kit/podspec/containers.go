package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podview"
)

// containerScope is what the containers of one Pod can refer to.
type containerScope struct {
	spec    *corev1.PodSpec
	volumes map[string]corev1.VolumeSource
	claims  sets.Set[string]
}

func (s containerScope) validateContainers(fldPath *field.Path) field.ErrorList {
	if len(s.spec.Containers) == 0 {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	var errs field.ErrorList
	names, hostPorts := sets.New[string](), sets.New[string]()
	for i := range s.spec.Containers {
		c, at := &s.spec.Containers[i], fldPath.Index(i)
		errs = append(errs, validateContainerName(c.Name, at, names)...)
		errs = append(errs, s.validateContainer(c, at)...)
		errs = append(errs, s.validateProbes(c, at)...)
		errs = append(errs, s.validateLifecycle(c.Lifecycle, at.Child("lifecycle"))...)
		errs = append(errs, validateRestart(c, at)...)
		errs = append(errs, hostPortConflicts(c.Ports, at.Child("ports"), hostPorts)...)
	}
	return errs
}

// validateInitContainers refuses what only makes sense for a container that keeps running, except on sidecars, which
// do.
func (s containerScope) validateInitContainers(fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for _, c := range s.spec.Containers {
		names.Insert(c.Name)
	}
	for i := range s.spec.InitContainers {
		c, at := &s.spec.InitContainers[i], fldPath.Index(i)
		errs = append(errs, validateContainerName(c.Name, at, names)...)
		errs = append(errs, s.validateContainer(c, at)...)
		errs = append(errs, validateRestart(c, at)...)
		if podview.IsSidecar(c) {
			errs = append(errs, s.validateProbes(c, at)...)
			errs = append(errs, s.validateLifecycle(c.Lifecycle, at.Child("lifecycle"))...)
		} else {
			errs = append(errs, forbidOnInitContainer(c, at)...)
		}
		errs = append(errs, hostPortConflicts(c.Ports, at.Child("ports"), sets.New[string]())...)
	}
	return errs
}

func forbidOnInitContainer(c *corev1.Container, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, setting := range []struct {
		name string
		set  bool
	}{
		{"lifecycle", c.Lifecycle != nil},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
	} {
		if setting.set {
			errs = append(errs, field.Forbidden(fldPath.Child(setting.name),
				"may not be set for init containers without restartPolicy=Always"))
		}
	}
	return errs
}

// validateContainerName checks the name and records it: it must be the only one of its kind in the Pod.
func validateContainerName(name string, fldPath *field.Path, taken sets.Set[string]) field.ErrorList {
	errs := fieldcheck.Required(name, fldPath.Child("name"), validation.IsDNS1123Label)
	if name != "" && taken.Has(name) {
		errs = append(errs, field.Duplicate(fldPath.Child("name"), name))
	}
	taken.Insert(name)
	return errs
}

// validateContainer checks what is common to all kinds of container.
func (s containerScope) validateContainer(c *corev1.Container, fldPath *field.Path) field.ErrorList {
	errs := validateImage(c.Image, fldPath.Child("image"))
	errs = append(errs, validateProcess(c, fldPath)...)
	errs = append(errs, validateTerminationMessage(c, fldPath)...)
	errs = append(errs, fieldcheck.RequiredOneOf(c.ImagePullPolicy, fldPath.Child("imagePullPolicy"),
		corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, validatePorts(c.Ports, fldPath.Child("ports"))...)
	errs = append(errs, s.validateEnv(c.Env, fldPath.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, fldPath.Child("envFrom"))...)
	errs = append(errs, s.validateMounts(c, fldPath)...)
	errs = append(errs, s.validateContainerResources(&c.Resources, fldPath.Child("resources"))...)
	errs = append(errs, s.validateResizePolicy(c.ResizePolicy, fldPath.Child("resizePolicy"))...)
	errs = append(errs, s.validateSecurityContext(c.SecurityContext, fldPath.Child("securityContext"))...)
	return errs
}

func validateImage(image string, fldPath *field.Path) field.ErrorList {
	if image == "" {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	if image != strings.TrimSpace(image) {
		return field.ErrorList{field.Invalid(fldPath, image, "must not have leading or trailing whitespace")}
	}
	return nil
}

func validateTerminationMessage(c *corev1.Container, fldPath *field.Path) field.ErrorList {
	return fieldcheck.RequiredOneOf(c.TerminationMessagePolicy, fldPath.Child("terminationMessagePolicy"),
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
}

func (s containerScope) validateResizePolicy(policies []corev1.ContainerResizePolicy,
	fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.ResourceName]()
	for i, policy := range policies {
		at := fldPath.Index(i)
		if seen.Has(policy.ResourceName) {
			errs = append(errs, field.Duplicate(at, policy.ResourceName))
		}
		seen.Insert(policy.ResourceName)
		errs = append(errs, fieldcheck.RequiredOneOf(policy.ResourceName, at.Child("resourceName"),
			corev1.ResourceCPU, corev1.ResourceMemory)...)
		errs = append(errs, fieldcheck.RequiredOneOf(policy.RestartPolicy, at.Child("restartPolicy"),
			corev1.NotRequired, corev1.RestartContainer)...)
		if s.spec.RestartPolicy == corev1.RestartPolicyNever && policy.RestartPolicy == corev1.RestartContainer {
			errs = append(errs, field.Invalid(at.Child("restartPolicy"), policy.RestartPolicy,
				"must be 'NotRequired' when `restartPolicy` is 'Never'"))
		}
	}
	return errs
}
