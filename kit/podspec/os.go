package podspec

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
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
	eachSecurityContext(spec, fldPath, func(context *corev1.SecurityContext, at *field.Path) {
		errs = append(errs, forbidForeign(context, foreign, detail, at)...)
	})
	return errs
}

// eachSecurityContext visits what each container of every kind says of its rights; nil is one that says nothing.
func eachSecurityContext(spec *corev1.PodSpec, fldPath *field.Path,
	visit func(*corev1.SecurityContext, *field.Path)) {
	for i := range spec.InitContainers {
		visit(spec.InitContainers[i].SecurityContext, fldPath.Child("initContainers").Index(i).Child("securityContext"))
	}
	for i := range spec.Containers {
		visit(spec.Containers[i].SecurityContext, fldPath.Child("containers").Index(i).Child("securityContext"))
	}
	for i := range spec.EphemeralContainers {
		visit(spec.EphemeralContainers[i].SecurityContext,
			fldPath.Child("ephemeralContainers").Index(i).Child("securityContext"))
	}
}

// validateHostProcesses wants all containers of a Pod, or none, to be processes of the Windows host, and in its network
// if they are.
func validateHostProcesses(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	ofPod := spec.SecurityContext != nil && isHostProcess(spec.SecurityContext.WindowsOptions, false)
	all, onHost := 0, 0
	eachSecurityContext(spec, fldPath, func(context *corev1.SecurityContext, _ *field.Path) {
		all++
		if context == nil && ofPod || context != nil && isHostProcess(context.WindowsOptions, ofPod) {
			onHost++
		}
	})
	if onHost == 0 {
		return nil
	}
	var errs field.ErrorList
	if onHost < all {
		errs = append(errs, field.Invalid(fldPath, "",
			"If pod contains any hostProcess containers then all containers must be HostProcess containers"))
	}
	if !spec.HostNetwork {
		errs = append(errs, field.Invalid(fldPath.Child("hostNetwork"), false,
			"hostNetwork must be true if pod contains any hostProcess containers"))
	}
	return errs
}

func isHostProcess(options *corev1.WindowsSecurityContextOptions, otherwise bool) bool {
	if options == nil {
		return otherwise
	}
	return ptr.Deref(options.HostProcess, otherwise)
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
