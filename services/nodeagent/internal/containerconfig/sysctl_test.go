package containerconfig

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCheckSysctls(t *testing.T) {
	check := func(name string, change func(*corev1.PodSpec), allowed ...string) error {
		pod := named("web", change)
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: name, Value: "1"}}}
		return CheckSysctls(pod, allowed)
	}
	for _, name := range []string{"kernel.shm_rmid_forced", "net/ipv4/tcp_syncookies"} {
		if err := check(name, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := check("kernel.msgmax", nil); err == nil ||
		err.Error() != `forbidden sysctl: "kernel.msgmax" not allowlisted` {
		t.Errorf("got %v", err)
	}
	if err := check("kernel.msgmax", nil, "kernel.msg*"); err != nil {
		t.Errorf("allowed by pattern: %v", err)
	}
	if err := check("net.ipv4.tcp_syncookies", func(s *corev1.PodSpec) { s.HostNetwork = true }); err == nil {
		t.Error("a network sysctl of the host was allowed")
	}
	if err := check("kernel.shm_rmid_forced", func(s *corev1.PodSpec) { s.HostIPC = true }); err == nil {
		t.Error("an IPC sysctl of the host was allowed")
	}
	host := func(s *corev1.PodSpec) { s.HostNetwork, s.HostIPC = true, true }
	for _, row := range []struct {
		name    string
		change  func(*corev1.PodSpec)
		allowed []string
		want    string
	}{
		{"net.core.somaxconn", nil, nil, "not allowlisted"},
		{"net.core.somaxconn", nil, []string{"other", "net.core.somaxconn"}, ""},
		{"net/core/somaxconn", nil, []string{"net.core.somaxconn"}, ""},
		{"net.core.somaxconn", nil, []string{"net/core/*"}, ""},
		{"net.core.somaxconn", nil, []string{"net.core.somaxcon"}, "not allowlisted"},
		{"net.core.somaxconn", nil, []string{"net.core"}, "not allowlisted"},
		{"net.core.somaxconn", nil, []string{"core.*"}, "not allowlisted"},
		{"net.core.somaxconn", host, []string{"*"}, "not allowed with host net enabled"},
		{"net/ipv4/tcp_syncookies", host, nil, "not allowed with host net enabled"},
		{"net.ipv4.tcp_syncookies", func(s *corev1.PodSpec) { s.HostIPC = true }, nil, ""},
		{"kernel.shm_rmid_forced", func(s *corev1.PodSpec) { s.HostNetwork = true }, nil, ""},
		{"kernel/shm_rmid_forced", host, nil, "not allowed with host ipc enabled"},
		{"fs.mqueue.msg_max", host, []string{"fs.mqueue.*"}, "not allowed with host ipc enabled"},
		{"fs.mqueue.msg_max", nil, []string{"fs.mqueue.*"}, ""},
		{"fs.file-max", host, []string{"fs.*"}, ""},
		{"vm.overcommit_memory", host, []string{"vm.overcommit_memory"}, ""},
		// A name with a dot in one of its parts is written with slashes.
		{"net/ipv4/conf/eth0.100/forwarding", nil, []string{"net/ipv4/conf/eth0.100/*"}, ""},
		{"net.ipv4.conf.eth0/100.forwarding", nil, []string{"net/ipv4/conf/eth0.100/forwarding"}, ""},
		{"net/ipv4/conf/eth0.100/forwarding", nil, []string{"net.ipv4.conf.eth0.100.forwarding"}, "not allowlisted"},
		{"plain", nil, []string{"plain"}, ""},
	} {
		err := check(row.name, row.change, row.allowed...)
		want := fmt.Sprintf("forbidden sysctl: %q %s", row.name, row.want)
		if (err == nil) != (row.want == "") || err != nil && err.Error() != want {
			t.Errorf("%s with %v: %v, want %q", row.name, row.allowed, err, row.want)
		}
	}
	second := named("web", func(s *corev1.PodSpec) {
		s.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.ipv4.tcp_rmem"},
			{Name: "kernel.msgmax"}}}
	})
	if err := CheckSysctls(second, nil); err == nil {
		t.Error("the second of two was allowed")
	}
	if err := CheckSysctls(named("web", nil), nil); err != nil {
		t.Error(err)
	}
}
