package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// A kernel setting is the host's when the Pod shares the namespace that it belongs to.
func TestSysctlsOfTheHost(t *testing.T) {
	const net, ipc, neither = "net", "ipc", ""
	for name, namespace := range map[string]string{
		"net.core.somaxconn":     net,
		"net/ipv4/ip_forward":    net,
		"kernel.sem":             ipc,
		"kernel/shmmax":          ipc,
		"kernel.shm_rmid_forced": ipc,
		"kernel.msgmnb":          ipc,
		"fs.mqueue.msg_max":      ipc,
		"network.a":              neither,
		"net_a":                  neither,
		"kernel.semaphores":      neither,
		"kernel.sched_autogroup": neither,
		"fs.mqueues":             neither,
		"vm.swappiness":          neither,
		"a.net.core":             neither,
		strings.Repeat("a", 253): neither,
	} {
		short := name[:min(len(name), 24)]
		set := func(s *corev1.PodSpec) {
			s.SecurityContext.Sysctls = []corev1.Sysctl{{Name: name, Value: "1"}}
		}
		refusedIf := map[bool][]string{true: {`spec.securityContext.sysctls[0].name: Invalid value: "` + name +
			`": sysctl not allowed with host net/ipc enabled`}}
		row{name: short, change: set}.run(t)
		row{name: short + " in the host's network", change: func(s *corev1.PodSpec) {
			set(s)
			s.HostNetwork = true
		}, want: refusedIf[namespace == net]}.run(t)
		row{name: short + " in the host's IPC", change: func(s *corev1.PodSpec) {
			set(s)
			s.HostIPC = true
		}, want: refusedIf[namespace == ipc]}.run(t)
	}
}

func TestMalformedSysctls(t *testing.T) {
	const form = "must have at most 253 characters and match regex " +
		`^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([\./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$`
	for _, name := range []string{strings.Repeat("a", 254), ".a", "a.", "a..b", "a b", "a-", "_a", "a\n"} {
		short := name[:min(len(name), 24)]
		quoted := strings.ReplaceAll(name, "\n", `\n`)
		row{name: short, change: func(s *corev1.PodSpec) {
			s.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "ok"}, {Name: name}}
		}, want: []string{`spec.securityContext.sysctls[1].name: Invalid value: "` + quoted + `": ` + form}}.run(t)
	}
}

// Identities and profiles at both levels, at their bounds.
func TestIdentities(t *testing.T) {
	container := func(context corev1.SecurityContext) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.SecurityContext = &context })
	}
	pod := func(change func(*corev1.PodSecurityContext)) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { change(s.SecurityContext) }
	}
	ids := func(user, group int64) func(*corev1.PodSpec) {
		return container(corev1.SecurityContext{RunAsUser: &user, RunAsGroup: &group})
	}
	const at, ofPod = "spec.containers[0].securityContext", "spec.securityContext"
	const rangeOfIDs = ": must be between 0 and 2147483647, inclusive"
	const host = "when `pod.Spec.HostUsers` is false"
	runAll(t, []row{
		{name: "root", change: ids(0, 0)},
		{name: "greatest ids", change: ids(2147483647, 2147483647)},
		{name: "ids above the greatest", change: ids(2147483648, 2147483648), want: []string{
			at + `.runAsGroup: Invalid value: 2147483648` + rangeOfIDs,
			at + `.runAsUser: Invalid value: 2147483648` + rangeOfIDs}},
		{name: "greatest ids of the Pod", change: pod(func(c *corev1.PodSecurityContext) {
			c.RunAsUser, c.RunAsGroup, c.FSGroup = ptr.To[int64](2147483647), ptr.To[int64](0), ptr.To[int64](0)
			c.SupplementalGroups = []int64{0, 2147483647}
		})},
		{name: "the second group of the Pod", change: pod(func(c *corev1.PodSecurityContext) {
			c.SupplementalGroups = []int64{1, 2147483648}
		}), want: []string{ofPod + `.supplementalGroups[1]: Invalid value: 2147483648` + rangeOfIDs}},
		{name: "all policies", change: pod(func(c *corev1.PodSecurityContext) {
			c.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeAlways)
			c.SELinuxChangePolicy = ptr.To(corev1.SELinuxChangePolicyRecursive)
			c.SupplementalGroupsPolicy = ptr.To(corev1.SupplementalGroupsPolicyMerge)
		})},
		{name: "profiles of a container", change: container(corev1.SecurityContext{
			SeccompProfile: &corev1.SeccompProfile{}, AppArmorProfile: &corev1.AppArmorProfile{},
			WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: ptr.To("")}}), want: []string{
			at + `.appArmorProfile.type: Required value: type is required when appArmorProfile is set`,
			at + `.seccompProfile.type: Required value: type is required when seccompProfile is set`,
			at + `.windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot be an empty string`}},
		{name: "longest name of an AppArmor profile", change: container(corev1.SecurityContext{
			AppArmorProfile: &corev1.AppArmorProfile{Type: "Localhost",
				LocalhostProfile: ptr.To(strings.Repeat("a", 4095))}})},
		{name: "an absolute seccomp profile", change: container(corev1.SecurityContext{
			SeccompProfile: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: ptr.To("/a")}}),
			want: []string{at + `.seccompProfile.localhostProfile: Invalid value: "/a": must be a relative path`}},
		{name: "an empty seccomp profile", change: container(corev1.SecurityContext{
			SeccompProfile: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: ptr.To("")}}),
			want: []string{at + `.seccompProfile.localhostProfile: Required value`}},
		{name: "greatest GMSA specification", change: container(corev1.SecurityContext{
			WindowsOptions: &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: ptr.To("a.b"),
				GMSACredentialSpec: ptr.To(strings.Repeat("a", 65536)), RunAsUserName: ptr.To("u")}})},
		{name: "rights that need no escalation", change: container(corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Privileged: ptr.To(false),
			Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CAP_SYS_TIME"},
				Drop: []corev1.Capability{"CAP_SYS_ADMIN"}}})},
		{name: "all rights", change: container(corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(true),
			Privileged: ptr.To(true), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CAP_SYS_ADMIN"}}})},
		{name: "all rights and no word on escalation", change: container(corev1.SecurityContext{
			Privileged: ptr.To(true)})},
		{name: "default proc mount with the host's users", change: container(corev1.SecurityContext{
			ProcMount: ptr.To(corev1.DefaultProcMount)})},
		{name: "unmasked proc mount, host's users by name", change: func(s *corev1.PodSpec) {
			container(corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)})(s)
			s.HostUsers = ptr.To(true)
		}, want: []string{at + ".procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`"}},
		{name: "SAF-107 the host's network alone", change: func(s *corev1.PodSpec) {
			s.HostUsers, s.HostNetwork = ptr.To(false), true
		}, want: []string{`spec.hostNetwork: Forbidden: ` + host}},
		{name: "one process namespace", change: func(s *corev1.PodSpec) { s.ShareProcessNamespace = ptr.To(true) }},
		{name: "the host's processes, not shared", change: func(s *corev1.PodSpec) {
			s.ShareProcessNamespace, s.HostPID = ptr.To(false), true
		}},
	})
}
