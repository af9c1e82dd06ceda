package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestValidatePodSecurity(t *testing.T) {
	pod := func(change func(*corev1.PodSecurityContext)) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { change(s.SecurityContext) }
	}
	sysctl := func(names ...string) func(*corev1.PodSpec) {
		return pod(func(c *corev1.PodSecurityContext) {
			for _, name := range names {
				c.Sysctls = append(c.Sysctls, corev1.Sysctl{Name: name, Value: "1"})
			}
		})
	}
	const at = "spec.securityContext"
	const hostUsers = "Forbidden: when `pod.Spec.HostUsers` is false"
	runAll(t, []row{
		{name: "POD-063 everything a Pod can drop and force", change: func(s *corev1.PodSpec) {
			c := s.SecurityContext
			s.HostNetwork = true
			c.RunAsNonRoot, c.RunAsUser, c.RunAsGroup, c.FSGroup = ptr.To(true), ptr.To[int64](1), ptr.To[int64](2),
				ptr.To[int64](3)
			c.SupplementalGroups, c.SupplementalGroupsPolicy = []int64{4}, ptr.To(corev1.SupplementalGroupsPolicyStrict)
			c.FSGroupChangePolicy, c.SELinuxChangePolicy = ptr.To(corev1.FSGroupChangeOnRootMismatch),
				ptr.To(corev1.SELinuxChangePolicyMountOption)
			c.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
			c.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
			c.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: ptr.To(true)}
		}},
		{name: "ids out of range", change: pod(func(c *corev1.PodSecurityContext) {
			c.RunAsUser, c.RunAsGroup, c.FSGroup, c.SupplementalGroups = ptr.To[int64](-1), ptr.To[int64](-1),
				ptr.To[int64](1<<31), []int64{-1}
		}), want: []string{
			at + `.fsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive`,
			at + `.runAsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive`,
			at + `.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive`,
			at + `.supplementalGroups[0]: Invalid value: -1: must be between 0 and 2147483647, inclusive`}},
		{name: "unknown policies", change: pod(func(c *corev1.PodSecurityContext) {
			c.FSGroupChangePolicy, c.SELinuxChangePolicy = ptr.To(corev1.PodFSGroupChangePolicy("x")),
				ptr.To(corev1.PodSELinuxChangePolicy("x"))
			c.SupplementalGroupsPolicy = ptr.To(corev1.SupplementalGroupsPolicy("x"))
		}), want: []string{
			at + `.fsGroupChangePolicy: Unsupported value: "x": supported values: "Always", "OnRootMismatch"`,
			at + `.seLinuxChangePolicy: Unsupported value: "x": supported values: "MountOption", "Recursive"`,
			at + `.supplementalGroupsPolicy: Unsupported value: "x": supported values: "Merge", "Strict"`}},
		{name: "sysctls", change: sysctl("net.ipv4.ip_forward", "kernel/shm_rmid_forced")},
		{name: "sysctls wrong in every way", change: sysctl("", "A", "net.a", "net/a"), want: []string{
			at + `.sysctls[0].name: Required value`,
			at +
				`.sysctls[1].name: Invalid value: "A": must have at most 253 characters and match regex ^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([\./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$`,
			at + `.sysctls[3].name: Duplicate value: "net/a"`}},
		{name: "sysctls of the host", change: func(s *corev1.PodSpec) {
			sysctl("net.core.somaxconn", "kernel.shm_rmid_forced", "kernel.sem")(s)
			s.HostNetwork, s.HostIPC = true, true
		}, want: []string{
			at + `.sysctls[0].name: Invalid value: "net.core.somaxconn": sysctl not allowed with host net/ipc enabled`,
			at +
				`.sysctls[1].name: Invalid value: "kernel.shm_rmid_forced": sysctl not allowed with host net/ipc enabled`,
			at + `.sysctls[2].name: Invalid value: "kernel.sem": sysctl not allowed with host net/ipc enabled`}},
		{name: "one process namespace and the host's", change: func(s *corev1.PodSpec) {
			s.ShareProcessNamespace,
				s.HostPID = ptr.To(true), true
		},
			want: []string{
				`spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled`,
			}},
		{name: "SAF-107 the host's namespaces", change: func(s *corev1.PodSpec) {
			s.HostNetwork, s.HostPID,
				s.HostIPC = true, true, true
		}},
		{name: "SAF-107 the host's namespaces and users", change: func(s *corev1.PodSpec) {
			s.HostNetwork, s.HostPID, s.HostIPC, s.HostUsers = true, true, true, ptr.To(true)
		}},
		{name: "SAF-094 users of its own", change: func(s *corev1.PodSpec) { s.HostUsers = ptr.To(false) }},
		{name: "SAF-107 the host's namespaces with users of its own", change: func(s *corev1.PodSpec) {
			s.HostNetwork, s.HostPID, s.HostIPC, s.HostUsers = true, true, true, ptr.To(false)
		}, want: []string{`spec.hostIPC: ` + hostUsers, `spec.hostNetwork: ` + hostUsers,
			`spec.hostPID: ` + hostUsers}},
	})
}

func TestValidateSecurityContext(t *testing.T) {
	context := func(c corev1.SecurityContext) func(*corev1.PodSpec) {
		return first(func(container *corev1.Container) { container.SecurityContext = &c })
	}
	const at = "spec.containers[0].securityContext"
	runAll(t, []row{
		{name: "POD-063 everything a container can drop and force", change: context(corev1.SecurityContext{
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, RunAsNonRoot: ptr.To(true),
			RunAsUser:                ptr.To[int64](1),
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost,
				LocalhostProfile: ptr.To("profiles/a.json")}})},
		{name: "ids out of range", change: context(corev1.SecurityContext{RunAsUser: ptr.To[int64](-1),
			RunAsGroup: ptr.To[int64](-1)}), want: []string{
			at + `.runAsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive`,
			at + `.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive`}},
		{name: "privileged without escalation", change: context(corev1.SecurityContext{Privileged: ptr.To(true),
			AllowPrivilegeEscalation: ptr.To(false)}),
			want: []string{at + ".allowPrivilegeEscalation: Invalid value: false: cannot set " +
				"`allowPrivilegeEscalation` to false and `privileged` to true"}},
		{name: "all rights without escalation",
			change: context(corev1.SecurityContext{Capabilities: &corev1.Capabilities{
				Add: []corev1.Capability{"CAP_SYS_ADMIN"}}, AllowPrivilegeEscalation: ptr.To(false)}),
			want: []string{at + ".allowPrivilegeEscalation: Invalid value: false: cannot set " +
				"`allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"}},
		{name: "unknown proc mount",
			change: context(corev1.SecurityContext{ProcMount: ptr.To(corev1.ProcMountType("x"))}),
			want:   []string{at + `.procMount: Unsupported value: "x": supported values: "Default", "Unmasked"`}},
		{name: "unmasked proc mount with the host's users",
			change: context(corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}),
			want: []string{at +
				".procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`"}},
		{name: "unmasked proc mount", change: func(s *corev1.PodSpec) {
			context(corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)})(s)
			s.HostUsers = ptr.To(false)
		}},
	})
}

func TestValidateProfiles(t *testing.T) {
	seccomp := func(p corev1.SeccompProfile) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = &p }
	}
	appArmor := func(p corev1.AppArmorProfile) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.SecurityContext.AppArmorProfile = &p }
	}
	const comp, armor = "spec.securityContext.seccompProfile", "spec.securityContext.appArmorProfile"
	runAll(t, []row{
		{name: "seccomp without a type", change: seccomp(corev1.SeccompProfile{}),
			want: []string{comp + `.type: Required value: type is required when seccompProfile is set`}},
		{name: "unknown seccomp", change: seccomp(corev1.SeccompProfile{Type: "x"}),
			want: []string{comp +
				`.type: Unsupported value: "x": supported values: "Localhost", "RuntimeDefault", "Unconfined"`}},
		{name: "seccomp of the node without a file", change: seccomp(corev1.SeccompProfile{Type: "Localhost"}),
			want: []string{comp + `.localhostProfile: Required value: must be set when seccomp type is Localhost`}},
		{name: "seccomp of the node, elsewhere", change: seccomp(corev1.SeccompProfile{Type: "Localhost",
			LocalhostProfile: ptr.To("../a")}),
			want: []string{comp + `.localhostProfile: Invalid value: "../a": must not contain '..'`}},
		{name: "seccomp file without need", change: seccomp(corev1.SeccompProfile{Type: "Unconfined",
			LocalhostProfile: ptr.To("a")}),
			want: []string{comp +
				`.localhostProfile: Invalid value: "a": can only be set when seccomp type is Localhost`}},
		{name: "AppArmor without a type", change: appArmor(corev1.AppArmorProfile{}),
			want: []string{armor + `.type: Required value: type is required when appArmorProfile is set`}},
		{name: "unknown AppArmor", change: appArmor(corev1.AppArmorProfile{Type: "x"}),
			want: []string{armor +
				`.type: Unsupported value: "x": supported values: "Localhost", "RuntimeDefault", "Unconfined"`}},
		{name: "AppArmor of the node", change: appArmor(corev1.AppArmorProfile{Type: "Localhost",
			LocalhostProfile: ptr.To("a")})},
		{name: "AppArmor of the node without a name", change: appArmor(corev1.AppArmorProfile{Type: "Localhost"}),
			want: []string{armor + `.localhostProfile: Required value: must be set when AppArmor type is Localhost`}},
		{name: "AppArmor with a blank name", change: appArmor(corev1.AppArmorProfile{Type: "Localhost",
			LocalhostProfile: ptr.To(" ")}),
			want: []string{armor + `.localhostProfile: Required value: must be set when AppArmor type is Localhost`}},
		{name: "AppArmor with a padded name", change: appArmor(corev1.AppArmorProfile{Type: "Localhost",
			LocalhostProfile: ptr.To("a ")}),
			want: []string{armor + `.localhostProfile: Invalid value: "a ": must not be padded with whitespace`}},
		{name: "AppArmor with a long name", change: appArmor(corev1.AppArmorProfile{Type: "Localhost",
			LocalhostProfile: ptr.To(strings.Repeat("a", 4096))}),
			want: []string{armor + `.localhostProfile: Too long: may not be more than 4095 bytes`}},
		{name: "AppArmor name without need", change: appArmor(corev1.AppArmorProfile{Type: "Unconfined",
			LocalhostProfile: ptr.To("a")}),
			want: []string{armor +
				`.localhostProfile: Invalid value: "a": can only be set when AppArmor type is Localhost`}},
	})
}

func TestValidateOS(t *testing.T) {
	system := func(name corev1.OSName, change func(*corev1.PodSpec)) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.OS = &corev1.PodOS{Name: name}
			change(s)
		}
	}
	nothing := func(*corev1.PodSpec) {}
	runAll(t, []row{
		{name: "POD-033 linux", change: system("linux", nothing)},
		{name: "POD-033 windows", change: system("windows", first(func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{
				RunAsUserName: ptr.To("u")}}
		}))},
		{name: "POD-033 another", change: system("plan9", nothing),
			want: []string{`spec.os.name: Unsupported value: "plan9": supported values: "linux", "windows"`}},
		{name: "POD-033 none", change: system("", nothing), want: []string{`spec.os.name: Required value`}},
		{name: "Windows options on Linux", change: system("linux", func(s *corev1.PodSpec) {
			s.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{}
			withInit(corev1.Container{Name: "i", Image: "i",
				SecurityContext: &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{}}})(s)
		}),
			want: []string{
				`spec.initContainers[0].securityContext.windowsOptions: Forbidden: cannot be set for a linux pod`,
				`spec.securityContext.windowsOptions: Forbidden: cannot be set for a linux pod`}},
		{name: "Linux options on Windows", change: system("windows", func(s *corev1.PodSpec) {
			s.HostPID, s.HostUsers = true, ptr.To(true)
			s.SecurityContext.RunAsUser = ptr.To[int64](1)
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true),
				ReadOnlyRootFilesystem: ptr.To(true)}
		}), want: []string{
			`spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod`,
			`spec.containers[0].securityContext.readOnlyRootFilesystem: Forbidden: cannot be set for a windows pod`,
			`spec.hostPID: Forbidden: cannot be set for a windows pod`,
			`spec.hostUsers: Forbidden: cannot be set for a windows pod`,
			`spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod`}},
		{name: "malformed Windows options", change: func(s *corev1.PodSpec) {
			s.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: ptr.To(
				"a_b"), GMSACredentialSpec: ptr.To(""), RunAsUserName: ptr.To("")}
			s.Containers[0].SecurityContext = &corev1.SecurityContext{
				WindowsOptions: &corev1.WindowsSecurityContextOptions{GMSACredentialSpec: ptr.To(strings.Repeat("a",
					64*1024+1))}}
		}, want: []string{
			`spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "` +
				strings.Repeat("a", 64*1024+1) + `": gmsaCredentialSpec size must be under 64 KiB`,
			`spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string`,
			`spec.securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`spec.securityContext.windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot be an empty string`,
		}},
	})
}
