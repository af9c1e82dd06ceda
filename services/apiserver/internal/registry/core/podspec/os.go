package podspec

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/registry/fieldcheck"
)

// Fields of the security contexts that the other operating system does not know.
var (
	notOnLinux   = sets.New("windowsOptions")
	notOnWindows = sets.New(
		"allowPrivilegeEscalation", "appArmorProfile", "capabilities", "fsGroup", "fsGroupChangePolicy", "privileged",
		"procMount", "readOnlyRootFilesystem", "runAsGroup", "runAsUser", "seccompProfile", "seLinuxChangePolicy",
		"seLinuxOptions", "supplementalGroups", "supplementalGroupsPolicy", "sysctls",
	)
)

// validateOS checks which system the Pod is for and that it asks for nothing that only the other one has.
func validateOS(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	if spec.OS == nil {
		return nil
	}
	errs := fieldcheck.RequiredOneOf(spec.OS.Name, fldPath.Child("os", "name"), corev1.Linux, corev1.Windows)
	if len(errs) > 0 {
		return errs
	}
	foreign := notOnLinux
	if spec.OS.Name == corev1.Windows {
		foreign = notOnWindows
		for name, host := range map[string]bool{"hostPID": spec.HostPID, "hostIPC": spec.HostIPC,
			"shareProcessNamespace": spec.ShareProcessNamespace != nil, "hostUsers": spec.HostUsers != nil} {
			if host {
				errs = append(errs, field.Forbidden(fldPath.Child(name), "cannot be set for a windows pod"))
			}
		}
	}
	detail := "cannot be set for a " + string(spec.OS.Name) + " pod"
	errs = append(errs, forbidForeign(spec.SecurityContext, foreign, detail, fldPath.Child("securityContext"))...)
	check := func(context *corev1.SecurityContext, at *field.Path) {
		errs = append(errs, forbidForeign(context, foreign, detail, at.Child("securityContext"))...)
	}
	for i := range spec.InitContainers {
		check(spec.InitContainers[i].SecurityContext, fldPath.Child("initContainers").Index(i))
	}
	for i := range spec.Containers {
		check(spec.Containers[i].SecurityContext, fldPath.Child("containers").Index(i))
	}
	for i := range spec.EphemeralContainers {
		check(spec.EphemeralContainers[i].SecurityContext, fldPath.Child("ephemeralContainers").Index(i))
	}
	return errs
}

// forbidForeign reports each set field of a security context that the Pod's operating system does not know.
func forbidForeign(context any, foreign sets.Set[string], detail string, fldPath *field.Path) field.ErrorList {
	value := reflect.ValueOf(context)
	if value.IsNil() {
		return nil
	}
	var errs field.ErrorList
	value = value.Elem()
	for _, f := range reflect.VisibleFields(value.Type()) {
		if name := jsonName(f); foreign.Has(name) && !value.FieldByIndex(f.Index).IsZero() {
			errs = append(errs, field.Forbidden(fldPath.Child(name), detail))
		}
	}
	return errs
}
