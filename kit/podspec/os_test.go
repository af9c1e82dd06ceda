package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Each field that Windows does not have is refused for Windows only.
func TestFieldsThatWindowsLacks(t *testing.T) {
	pod := func(set func(*corev1.PodSecurityContext)) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { set(s.SecurityContext) }
	}
	container := func(context corev1.SecurityContext) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.SecurityContext = &context })
	}
	seccomp := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	armor := &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	for at, change := range map[string]func(*corev1.PodSpec){
		"hostPID":               func(s *corev1.PodSpec) { s.HostPID = true },
		"hostIPC":               func(s *corev1.PodSpec) { s.HostIPC = true },
		"hostUsers":             func(s *corev1.PodSpec) { s.HostUsers = ptr.To(true) },
		"shareProcessNamespace": func(s *corev1.PodSpec) { s.ShareProcessNamespace = ptr.To(false) },
		"securityContext.appArmorProfile": pod(func(c *corev1.PodSecurityContext) {
			c.AppArmorProfile = armor
		}),
		"securityContext.fsGroup": pod(func(c *corev1.PodSecurityContext) { c.FSGroup = ptr.To[int64](0) }),
		"securityContext.fsGroupChangePolicy": pod(func(c *corev1.PodSecurityContext) {
			c.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeAlways)
		}),
		"securityContext.runAsGroup": pod(func(c *corev1.PodSecurityContext) { c.RunAsGroup = ptr.To[int64](0) }),
		"securityContext.runAsUser":  pod(func(c *corev1.PodSecurityContext) { c.RunAsUser = ptr.To[int64](0) }),
		"securityContext.seLinuxChangePolicy": pod(func(c *corev1.PodSecurityContext) {
			c.SELinuxChangePolicy = ptr.To(corev1.SELinuxChangePolicyRecursive)
		}),
		"securityContext.seLinuxOptions": pod(func(c *corev1.PodSecurityContext) {
			c.SELinuxOptions = &corev1.SELinuxOptions{}
		}),
		"securityContext.seccompProfile": pod(func(c *corev1.PodSecurityContext) { c.SeccompProfile = seccomp }),
		"securityContext.supplementalGroups": pod(func(c *corev1.PodSecurityContext) {
			c.SupplementalGroups = []int64{1}
		}),
		"securityContext.supplementalGroupsPolicy": pod(func(c *corev1.PodSecurityContext) {
			c.SupplementalGroupsPolicy = ptr.To(corev1.SupplementalGroupsPolicyMerge)
		}),
		"securityContext.sysctls": pod(func(c *corev1.PodSecurityContext) {
			c.Sysctls = []corev1.Sysctl{{Name: "net.a"}}
		}),
		"containers[0].securityContext.allowPrivilegeEscalation": container(corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(true)}),
		"containers[0].securityContext.appArmorProfile": container(corev1.SecurityContext{AppArmorProfile: armor}),
		"containers[0].securityContext.capabilities": container(corev1.SecurityContext{
			Capabilities: &corev1.Capabilities{}}),
		"containers[0].securityContext.procMount": container(corev1.SecurityContext{
			ProcMount: ptr.To(corev1.DefaultProcMount)}),
		"containers[0].securityContext.runAsGroup": container(corev1.SecurityContext{RunAsGroup: ptr.To[int64](0)}),
		"containers[0].securityContext.runAsUser":  container(corev1.SecurityContext{RunAsUser: ptr.To[int64](0)}),
		"containers[0].securityContext.seLinuxOptions": container(corev1.SecurityContext{
			SELinuxOptions: &corev1.SELinuxOptions{}}),
		"containers[0].securityContext.seccompProfile": container(corev1.SecurityContext{SeccompProfile: seccomp}),
		"initContainers[0].securityContext.privileged": withInit(corev1.Container{Name: "i", Image: "i",
			SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(false)}}),
		"ephemeralContainers[0].securityContext.privileged": func(s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: debugWith(
				corev1.SecurityContext{Privileged: ptr.To(false)})}}
		},
	} {
		row{name: at, change: change}.run(t)
		row{name: at + " on Linux", change: func(s *corev1.PodSpec) {
			change(s)
			s.OS = &corev1.PodOS{Name: "linux"}
		}}.run(t)
		row{name: at + " on Windows", change: func(s *corev1.PodSpec) {
			change(s)
			s.OS = &corev1.PodOS{Name: "windows"}
		}, want: []string{"spec." + at + ": Forbidden: cannot be set for a windows pod"}}.run(t)
	}
}

func debugWith(context corev1.SecurityContext) corev1.EphemeralContainerCommon {
	return corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox", SecurityContext: &context}
}

// What both systems have may be set for both; the options of Windows are refused wherever they stand on Linux.
func TestFieldsOfBothSystems(t *testing.T) {
	windows := corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{}}
	shared := func(s *corev1.PodSpec) {
		s.HostNetwork, s.SecurityContext.RunAsNonRoot = true, ptr.To(true)
		s.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr.To(true)}
	}
	runAll(t, []row{
		{name: "users other than root on Linux", change: func(s *corev1.PodSpec) {
			shared(s)
			s.OS = &corev1.PodOS{Name: "linux"}
		}},
		{name: "users other than root on Windows", change: func(s *corev1.PodSpec) {
			shared(s)
			s.OS = &corev1.PodOS{Name: "windows"}
		}},
		{name: "Windows options of containers on Linux", change: func(s *corev1.PodSpec) {
			s.OS = &corev1.PodOS{Name: "linux"}
			s.Containers[0].SecurityContext = &windows
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: debugWith(windows)}}
		}, want: []string{
			`spec.containers[0].securityContext.windowsOptions: Forbidden: cannot be set for a linux pod`,
			`spec.ephemeralContainers[0].securityContext.windowsOptions: Forbidden: cannot be set for a linux pod`}},
		{name: "Windows options of no system", change: first(func(c *corev1.Container) {
			c.SecurityContext = &windows
		})},
	})
}

// Either all containers are processes of the Windows host, in its network, or none is. A container that does not say
// is what its Pod is.
func TestHostProcesses(t *testing.T) {
	const mixed = `spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers`
	const network = `spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers`
	options := func(host *bool) *corev1.WindowsSecurityContextOptions {
		return &corev1.WindowsSecurityContextOptions{HostProcess: host}
	}
	context := func(host *bool) *corev1.SecurityContext {
		if host == nil {
			return nil
		}
		return &corev1.SecurityContext{WindowsOptions: options(host)}
	}
	yes, no := ptr.To(true), ptr.To(false)
	for _, r := range []struct {
		name                       string
		pod, main, init, ephemeral *bool
		inNetwork                  bool
		want                       []string
	}{
		{name: "none", main: no, init: no},
		{name: "none by the Pod's word", pod: no},
		{name: "all by the Pod's word", pod: yes, inNetwork: true},
		{name: "all by their own", main: yes, init: yes, ephemeral: yes, inNetwork: true},
		{name: "all against the Pod's word", pod: no, main: yes, init: yes, ephemeral: yes, inNetwork: true},
		{name: "none against the Pod's word", pod: yes, main: no, init: no, ephemeral: no},
		{name: "all, in a network of their own", pod: yes, want: []string{network}},
		{name: "all but the main one", pod: yes, main: no, inNetwork: true, want: []string{mixed}},
		{name: "all but the init container", pod: yes, init: no, inNetwork: true, want: []string{mixed}},
		{name: "all but the ephemeral one", pod: yes, ephemeral: no, inNetwork: true, want: []string{mixed}},
		{name: "one alone, in a network of its own", main: yes, want: []string{mixed, network}},
	} {
		row{name: r.name, want: r.want, change: func(s *corev1.PodSpec) {
			s.HostNetwork = r.inNetwork
			if r.pod != nil {
				s.SecurityContext.WindowsOptions = options(r.pod)
			}
			s.Containers[0].SecurityContext = context(r.main)
			withInit(corev1.Container{Name: "i", Image: "i", SecurityContext: context(r.init)})(s)
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.
				EphemeralContainerCommon{Name: "debug", Image: "busybox", SecurityContext: context(r.ephemeral)}}}
		}}.run(t)
	}
}
