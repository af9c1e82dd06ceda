package containerconfig

import (
	"errors"
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
)

// Paths in a container that show or change the host.
var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// security combines the container's own context with that of its Pod.
type security struct {
	own   *corev1.SecurityContext
	pod   *corev1.PodSecurityContext
	image ImageUser
}

// ImageUser is the user that an image is configured to run as: a number, or else a name; both empty mean root.
type ImageUser struct {
	UID  *int64
	Name string
}

func effective(pod *corev1.Pod, container *corev1.Container, image ImageUser) security {
	s := security{own: container.SecurityContext, pod: pod.Spec.SecurityContext, image: image}
	if s.own == nil {
		s.own = &corev1.SecurityContext{}
	}
	if s.pod == nil {
		s.pod = &corev1.PodSecurityContext{}
	}
	return s
}

func (s security) runAsUser() *int64 { return either(s.own.RunAsUser, s.pod.RunAsUser) }

// either returns the container's value if it has one, else the Pod's.
func either[T any](own, pod *T) *T {
	if own != nil {
		return own
	}
	return pod
}

// checkNonRoot returns why the container would break runAsNonRoot, or nil.
func (s security) checkNonRoot() error {
	if !ptr.Deref(either(s.own.RunAsNonRoot, s.pod.RunAsNonRoot), false) {
		return nil
	}
	if user := s.runAsUser(); user != nil {
		if *user == 0 {
			return errors.New("container's runAsUser breaks non-root policy")
		}
		return nil
	}
	switch {
	case s.image.UID != nil && *s.image.UID == 0, s.image.UID == nil && s.image.Name == "":
		return errors.New("container has runAsNonRoot and image will run as root")
	case s.image.UID == nil:
		return fmt.Errorf(
			"container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root",
			s.image.Name)
	}
	return nil
}

// context computes the security context of one container; in supplies the node's settings and the namespaces.
func (s security) context(in ContainerInput) (*cri.LinuxContainerSecurityContext, error) {
	if err := s.checkNonRoot(); err != nil {
		return nil, err
	}
	seccomp, err := s.seccomp(in.Node)
	if err != nil {
		return nil, err
	}
	options := namespaces(in.Pod, in.UserNamespace)
	if in.TargetContainerID != "" {
		options.Pid, options.TargetId = cri.NamespaceMode_TARGET, in.TargetContainerID
	}
	context := &cri.LinuxContainerSecurityContext{
		NamespaceOptions:         options,
		Privileged:               ptr.Deref(s.own.Privileged, false),
		ReadonlyRootfs:           ptr.Deref(s.own.ReadOnlyRootFilesystem, false),
		NoNewPrivs:               !ptr.Deref(s.own.AllowPrivilegeEscalation, true),
		SupplementalGroups:       podGroups(in.Pod),
		SupplementalGroupsPolicy: groupsPolicy(s.pod),
		SelinuxOptions:           selinux(either(s.own.SELinuxOptions, s.pod.SELinuxOptions)),
		Seccomp:                  seccomp,
		Apparmor:                 appArmor(either(s.own.AppArmorProfile, s.pod.AppArmorProfile)),
	}
	s.setUser(context)
	if c := s.own.Capabilities; c != nil {
		context.Capabilities = &cri.Capability{AddCapabilities: capabilityNames(c.Add),
			DropCapabilities: capabilityNames(c.Drop)}
	}
	if ptr.Deref(s.own.ProcMount, corev1.DefaultProcMount) == corev1.DefaultProcMount {
		context.MaskedPaths, context.ReadonlyPaths = slices.Clone(maskedPaths), slices.Clone(readonlyPaths)
	}
	return context, nil
}

// setUser sets the user by precedence: of the container, its Pod, its image. A group without a user is combined
// with the image's user.
func (s security) setUser(context *cri.LinuxContainerSecurityContext) {
	switch user := s.runAsUser(); {
	case user != nil:
		context.RunAsUser = int64Value(user)
	case s.image.UID != nil:
		context.RunAsUser = int64Value(s.image.UID)
	default:
		context.RunAsUsername = s.image.Name
	}
	group := either(s.own.RunAsGroup, s.pod.RunAsGroup)
	if group == nil {
		return
	}
	if context.RunAsUser == nil && context.RunAsUsername == "" {
		context.RunAsUser = &cri.Int64Value{}
	}
	context.RunAsGroup = int64Value(group)
}

func (s security) seccomp(node Node) (*cri.SecurityProfile, error) {
	profile := either(s.own.SeccompProfile, s.pod.SeccompProfile)
	if profile == nil {
		kind := cri.SecurityProfile_Unconfined
		if node.SeccompDefault {
			kind = cri.SecurityProfile_RuntimeDefault
		}
		return &cri.SecurityProfile{ProfileType: kind}, nil
	}
	switch profile.Type {
	case corev1.SeccompProfileTypeRuntimeDefault:
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault}, nil
	case corev1.SeccompProfileTypeLocalhost:
		if ptr.Deref(profile.LocalhostProfile, "") == "" {
			return nil, errors.New("localhostProfile must be set if seccompProfile type is Localhost")
		}
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Localhost,
			LocalhostRef: path.Join(node.SeccompRoot, *profile.LocalhostProfile)}, nil
	}
	return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined}, nil
}

// appArmor returns nil if the runtime is to choose.
func appArmor(profile *corev1.AppArmorProfile) *cri.SecurityProfile {
	if profile == nil {
		return nil
	}
	switch profile.Type {
	case corev1.AppArmorProfileTypeRuntimeDefault:
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault}
	case corev1.AppArmorProfileTypeLocalhost:
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Localhost,
			LocalhostRef: ptr.Deref(profile.LocalhostProfile, "")}
	}
	return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined}
}

func selinux(options *corev1.SELinuxOptions) *cri.SELinuxOption {
	if options == nil {
		return nil
	}
	return &cri.SELinuxOption{User: options.User, Role: options.Role, Type: options.Type, Level: options.Level}
}

// podGroups returns the supplemental groups of every process of the Pod.
func podGroups(pod *corev1.Pod) []int64 {
	context := pod.Spec.SecurityContext
	if context == nil {
		return nil
	}
	groups := slices.Clone(context.SupplementalGroups)
	if context.FSGroup != nil {
		groups = append(groups, *context.FSGroup)
	}
	return groups
}

func groupsPolicy(context *corev1.PodSecurityContext) cri.SupplementalGroupsPolicy {
	if ptr.Deref(context.SupplementalGroupsPolicy,
		corev1.SupplementalGroupsPolicyMerge) == corev1.SupplementalGroupsPolicyStrict {
		return cri.SupplementalGroupsPolicy_Strict
	}
	return cri.SupplementalGroupsPolicy_Merge
}

func privileged(container *corev1.Container) bool {
	return container.SecurityContext != nil && ptr.Deref(container.SecurityContext.Privileged, false)
}

func capabilityNames(capabilities []corev1.Capability) []string {
	var names []string
	for _, capability := range capabilities {
		names = append(names, string(capability))
	}
	return names
}
