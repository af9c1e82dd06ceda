package containerconfig

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// safeSysctls affect only one Pod, so every Pod may set them.
var safeSysctls = []string{
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
	"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem",
	"net.ipv4.tcp_wmem",
}

// CheckSysctls returns why the Pod may not run on this node, or nil. allowed lists further names that the operator
// permits; one with a trailing * permits all names with that prefix. The Pod then fails with reason
// SysctlForbidden.
func CheckSysctls(pod *corev1.Pod, allowed []string) error {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	for _, sysctl := range pod.Spec.SecurityContext.Sysctls {
		name := sysctlName(sysctl.Name)
		if !slices.Contains(safeSysctls, name) && !slices.ContainsFunc(allowed,
			func(pattern string) bool { return matches(pattern, name) }) {
			return fmt.Errorf("forbidden sysctl: %q not allowlisted", sysctl.Name)
		}
		if pod.Spec.HostNetwork && strings.HasPrefix(name, "net.") {
			return fmt.Errorf("forbidden sysctl: %q not allowed with host net enabled", sysctl.Name)
		}
		if pod.Spec.HostIPC && (strings.HasPrefix(name, "kernel.") || strings.HasPrefix(name, "fs.mqueue.")) {
			return fmt.Errorf("forbidden sysctl: %q not allowed with host ipc enabled", sysctl.Name)
		}
	}
	return nil
}

func matches(pattern, name string) bool {
	pattern = sysctlName(pattern)
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// sysctlName converts a name to dots, from either separator.
func sysctlName(name string) string {
	separator := strings.IndexAny(name, "./")
	if separator < 0 || name[separator] == '.' {
		return name
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '/':
			return '.'
		case '.':
			return '/'
		}
		return r
	}, name)
}
