package podspec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// validatePodSecurity checks the namespaces that the Pod shares with its host and the rights that all its containers
// have.
func validatePodSecurity(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	errs := append(validateHostNamespaces(spec, fldPath), validateHostProcesses(spec, fldPath)...)
	context, at := spec.SecurityContext, fldPath.Child("securityContext")
	if context == nil {
		return errs
	}
	errs = append(errs, userID(context.RunAsUser, at.Child("runAsUser"))...)
	errs = append(errs, groupID(context.RunAsGroup, at.Child("runAsGroup"))...)
	errs = append(errs, groupID(context.FSGroup, at.Child("fsGroup"))...)
	for i, group := range context.SupplementalGroups {
		errs = append(errs, groupID(&group, at.Child("supplementalGroups").Index(i))...)
	}
	errs = append(errs, fieldcheck.OneOfPtr(context.SupplementalGroupsPolicy, at.Child("supplementalGroupsPolicy"),
		corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	errs = append(errs, fieldcheck.OneOfPtr(context.FSGroupChangePolicy, at.Child("fsGroupChangePolicy"),
		corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)...)
	errs = append(errs, fieldcheck.OneOfPtr(context.SELinuxChangePolicy, at.Child("seLinuxChangePolicy"),
		corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive)...)
	errs = append(errs, validateSysctls(spec, at.Child("sysctls"))...)
	errs = append(errs, validateSeccomp(context.SeccompProfile, at.Child("seccompProfile"))...)
	errs = append(errs, validateAppArmor(context.AppArmorProfile, at.Child("appArmorProfile"))...)
	return append(errs, validateWindowsOptions(context.WindowsOptions, at.Child("windowsOptions"))...)
}

// validateHostNamespaces keeps a Pod whose users are not the host's out of the host's other namespaces.
func validateHostNamespaces(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace && spec.HostPID {
		errs = append(errs, field.Invalid(fldPath.Child("shareProcessNamespace"), true,
			"ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	if usesHostUsers(spec) {
		return errs
	}
	for _, namespace := range []struct {
		name string
		host bool
	}{{"hostNetwork", spec.HostNetwork}, {"hostPID", spec.HostPID}, {"hostIPC", spec.HostIPC}} {
		if namespace.host {
			errs = append(errs, field.Forbidden(fldPath.Child(namespace.name), "when `pod.Spec.HostUsers` is false"))
		}
	}
	return errs
}

func usesHostUsers(spec *corev1.PodSpec) bool { return spec.HostUsers == nil || *spec.HostUsers }

var (
	sysctlPattern = regexp.MustCompile(`^` + sysctlFormat + `$`)
	ipcSysctls    = []string{"kernel/shm", "kernel/msg", "fs/mqueue/"}
)

const (
	sysctlFormat    = `[a-z0-9]([-_a-z0-9]*[a-z0-9])?([\./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*`
	sysctlMaxLength = 253
)

func validateSysctls(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, sysctl := range spec.SecurityContext.Sysctls {
		at, name := fldPath.Index(i).Child("name"), strings.ReplaceAll(sysctl.Name, ".", "/")
		switch {
		case sysctl.Name == "":
			errs = append(errs, field.Required(at, ""))
		case len(sysctl.Name) > sysctlMaxLength || !sysctlPattern.MatchString(sysctl.Name):
			errs = append(errs, field.Invalid(at, sysctl.Name,
				fmt.Sprintf("must have at most %d characters and match regex ^%s$", sysctlMaxLength, sysctlFormat)))
		case names.Has(name):
			errs = append(errs, field.Duplicate(at, sysctl.Name))
		case isHostSysctl(name, spec):
			errs = append(errs, field.Invalid(at, sysctl.Name, "sysctl not allowed with host net/ipc enabled"))
		}
		names.Insert(name)
	}
	return errs
}

// isHostSysctl reports whether the setting would be the host's, because the Pod shares the namespace it belongs to.
func isHostSysctl(name string, spec *corev1.PodSpec) bool {
	if strings.HasPrefix(name, "net/") {
		return spec.HostNetwork
	}
	isIPC := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return spec.HostIPC && (name == "kernel/sem" || slices.ContainsFunc(ipcSysctls, isIPC))
}

func validateSeccomp(profile *corev1.SeccompProfile, fldPath *field.Path) field.ErrorList {
	if profile == nil {
		return nil
	}
	if profile.Type == "" {
		return field.ErrorList{field.Required(fldPath.Child("type"), "type is required when seccompProfile is set")}
	}
	errs := fieldcheck.OneOf(profile.Type, fldPath.Child("type"),
		corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault,
		corev1.SeccompProfileTypeUnconfined)
	local, at := profile.LocalhostProfile, fldPath.Child("localhostProfile")
	switch {
	case profile.Type != corev1.SeccompProfileTypeLocalhost && local != nil:
		errs = append(errs, field.Invalid(at, *local, "can only be set when seccomp type is Localhost"))
	case profile.Type == corev1.SeccompProfileTypeLocalhost && local == nil:
		errs = append(errs, field.Required(at, "must be set when seccomp type is Localhost"))
	case profile.Type == corev1.SeccompProfileTypeLocalhost:
		errs = append(errs, projectedFile(*local, at)...)
	}
	return errs
}

func validateAppArmor(profile *corev1.AppArmorProfile, fldPath *field.Path) field.ErrorList {
	if profile == nil {
		return nil
	}
	if profile.Type == "" {
		return field.ErrorList{field.Required(fldPath.Child("type"), "type is required when appArmorProfile is set")}
	}
	errs := fieldcheck.OneOf(profile.Type, fldPath.Child("type"),
		corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault,
		corev1.AppArmorProfileTypeUnconfined)
	local, at := profile.LocalhostProfile, fldPath.Child("localhostProfile")
	switch {
	case profile.Type != corev1.AppArmorProfileTypeLocalhost && local != nil:
		errs = append(errs, field.Invalid(at, *local, "can only be set when AppArmor type is Localhost"))
	case profile.Type == corev1.AppArmorProfileTypeLocalhost && local == nil:
		errs = append(errs, field.Required(at, "must be set when AppArmor type is Localhost"))
	case profile.Type != corev1.AppArmorProfileTypeLocalhost:
	case strings.TrimSpace(*local) == "":
		errs = append(errs, field.Required(at, "must be set when AppArmor type is Localhost"))
	case strings.TrimSpace(*local) != *local:
		errs = append(errs, field.Invalid(at, *local, "must not be padded with whitespace"))
	case len(*local) > 4095:
		errs = append(errs, field.TooLong(at, "", 4095))
	}
	return errs
}

func isPrivileged(context *corev1.SecurityContext) bool {
	return context != nil && context.Privileged != nil && *context.Privileged
}

// validateSecurityContext checks the rights of one container, by themselves and against those of its Pod.
func (s containerScope) validateSecurityContext(context *corev1.SecurityContext, fldPath *field.Path) field.ErrorList {
	if context == nil {
		return nil
	}
	errs := userID(context.RunAsUser, fldPath.Child("runAsUser"))
	errs = append(errs, groupID(context.RunAsGroup, fldPath.Child("runAsGroup"))...)
	errs = append(errs, validateEscalation(context, fldPath.Child("allowPrivilegeEscalation"))...)
	at := fldPath.Child("procMount")
	errs = append(errs, fieldcheck.OneOfPtr(context.ProcMount, at, corev1.DefaultProcMount,
		corev1.UnmaskedProcMount)...)
	if context.ProcMount != nil && *context.ProcMount == corev1.UnmaskedProcMount && usesHostUsers(s.spec) {
		errs = append(errs, field.Invalid(at, *context.ProcMount, "`hostUsers` must be false to use `Unmasked`"))
	}
	errs = append(errs, validateSeccomp(context.SeccompProfile, fldPath.Child("seccompProfile"))...)
	errs = append(errs, validateAppArmor(context.AppArmorProfile, fldPath.Child("appArmorProfile"))...)
	errs = append(errs, validateWindowsOptions(context.WindowsOptions, fldPath.Child("windowsOptions"))...)
	return errs
}

// validateEscalation refuses to deny a process more rights while granting it all there are.
func validateEscalation(context *corev1.SecurityContext, fldPath *field.Path) field.ErrorList {
	if context.AllowPrivilegeEscalation == nil || *context.AllowPrivilegeEscalation {
		return nil
	}
	var errs field.ErrorList
	if isPrivileged(context) {
		errs = append(errs, field.Invalid(fldPath, false,
			"cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
	}
	if context.Capabilities != nil && slices.Contains(context.Capabilities.Add, "CAP_SYS_ADMIN") {
		errs = append(errs, field.Invalid(fldPath, false,
			"cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
	}
	return errs
}

func validateWindowsOptions(options *corev1.WindowsSecurityContextOptions, fldPath *field.Path) field.ErrorList {
	if options == nil {
		return nil
	}
	var errs field.ErrorList
	if name := options.GMSACredentialSpecName; name != nil {
		errs = append(errs, fieldcheck.Messages(*name, fldPath.Child("gmsaCredentialSpecName"),
			validation.IsDNS1123Subdomain(*name))...)
	}
	if spec := options.GMSACredentialSpec; spec != nil {
		switch at := fldPath.Child("gmsaCredentialSpec"); {
		case *spec == "":
			errs = append(errs, field.Invalid(at, *spec, "gmsaCredentialSpec cannot be an empty string"))
		case len(*spec) > 64*1024:
			errs = append(errs, field.Invalid(at, *spec, "gmsaCredentialSpec size must be under 64 KiB"))
		}
	}
	if name := options.RunAsUserName; name != nil && *name == "" {
		errs = append(errs, field.Invalid(fldPath.Child("runAsUserName"), *name,
			"runAsUserName cannot be an empty string"))
	}
	return errs
}
