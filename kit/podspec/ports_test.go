package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func withPorts(ports ...corev1.ContainerPort) func(*corev1.PodSpec) {
	return first(func(c *corev1.Container) { c.Ports = ports })
}

func TestPortBounds(t *testing.T) {
	const at = "spec.containers[0].ports[0]"
	const range16 = "must be between 1 and 65535, inclusive"
	runAll(t, []row{
		{name: "the least and the greatest number", change: withPorts(
			corev1.ContainerPort{ContainerPort: 1, HostPort: 65535}, corev1.ContainerPort{ContainerPort: 65535,
				HostPort: 1})},
		{name: "a number above the greatest", change: withPorts(corev1.ContainerPort{ContainerPort: 65536}),
			want: []string{at + `.containerPort: Invalid value: 65536: ` + range16}},
		{name: "a host port below the least", change: withPorts(corev1.ContainerPort{ContainerPort: 1, HostPort: -1}),
			want: []string{at + `.hostPort: Invalid value: -1: ` + range16}},
		{name: "the longest name", change: withPorts(corev1.ContainerPort{ContainerPort: 1,
			Name: strings.Repeat("a", 15)})},
		{name: "a name too long", change: withPorts(corev1.ContainerPort{ContainerPort: 1,
			Name: strings.Repeat("a", 16)}),
			want: []string{at + `.name: Invalid value: "aaaaaaaaaaaaaaaa": must be no more than 15 characters`}},
		{name: "one malformed name twice is malformed twice", change: withPorts(
			corev1.ContainerPort{ContainerPort: 1, Name: "1"}, corev1.ContainerPort{ContainerPort: 2, Name: "1"}),
			want: []string{at + `.name: Invalid value: "1": must contain at least one letter (a-z)`,
				`spec.containers[0].ports[1].name: Invalid value: "1": must contain at least one letter (a-z)`}},
		{name: "ports without names", change: withPorts(corev1.ContainerPort{ContainerPort: 1},
			corev1.ContainerPort{ContainerPort: 2})},
		{name: "one name in two containers", change: func(s *corev1.PodSpec) {
			withPorts(corev1.ContainerPort{ContainerPort: 1, Name: "http"})(s)
			also(corev1.Container{Name: "b", Image: "b",
				Ports: []corev1.ContainerPort{{ContainerPort: 2, Name: "http"}}})(s)
		}},
		{name: "protocol missing", bare: true, change: withPorts(corev1.ContainerPort{ContainerPort: 1}),
			want: []string{at + `.protocol: Required value`}},
		{name: "all protocols", change: withPorts(corev1.ContainerPort{ContainerPort: 1, Protocol: "TCP"},
			corev1.ContainerPort{ContainerPort: 1, Protocol: "UDP"},
			corev1.ContainerPort{ContainerPort: 1, Protocol: "SCTP"})},
		{name: "host addresses of both families", change: withPorts(
			corev1.ContainerPort{ContainerPort: 1, HostIP: "10.0.0.1"},
			corev1.ContainerPort{ContainerPort: 2, HostIP: "fd00::1"})},
	})
}

// Two containers that run at the same time cannot have one port of the host; two that never do may share it.
func TestHostPortConflicts(t *testing.T) {
	host80 := corev1.ContainerPort{ContainerPort: 1, HostPort: 80}
	at := func(ip string, port corev1.ContainerPort) corev1.ContainerPort {
		port.HostIP = ip
		return port
	}
	runAll(t, []row{
		{name: "within one container", change: withPorts(host80, corev1.ContainerPort{ContainerPort: 2, HostPort: 80}),
			want: []string{`spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"`}},
		{name: "at two addresses", change: withPorts(at("10.0.0.1", host80), at("10.0.0.2", host80))},
		{name: "at one address", change: withPorts(at("10.0.0.1", host80), at("10.0.0.1", host80)),
			want: []string{`spec.containers[0].ports[1].hostPort: Duplicate value: "TCP/10.0.0.1/80"`}},
		{name: "no host port twice", change: withPorts(corev1.ContainerPort{ContainerPort: 1},
			corev1.ContainerPort{ContainerPort: 1})},
		{name: "within the second init container", change: func(s *corev1.PodSpec) {
			withInit(corev1.Container{Name: "i", Image: "i"})(s)
			withInit(corev1.Container{Name: "j", Image: "j", Ports: []corev1.ContainerPort{host80, host80}})(s)
		}, want: []string{`spec.initContainers[1].ports[1].hostPort: Duplicate value: "TCP//80"`}},
	})
}

// In the host's network a port has one number, in an init container too, and a template may leave it out.
func TestHostNetworkPorts(t *testing.T) {
	const mismatch = "must match `hostPort` when `hostNetwork` is true"
	ports := func(main, init int32) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.HostNetwork = true
			withPorts(corev1.ContainerPort{ContainerPort: 80, HostPort: main, Protocol: "TCP"})(s)
			withInit(corev1.Container{Name: "i", Image: "i", ImagePullPolicy: "Always",
				TerminationMessagePolicy: "File",
				Ports: []corev1.ContainerPort{{ContainerPort: 81, HostPort: init,
					Protocol: "TCP"}}})(s)
		}
	}
	runAll(t, []row{
		{name: "equal", change: ports(80, 81)},
		{name: "another one of an init container", change: ports(80, 82),
			want: []string{`spec.initContainers[0].ports[0].containerPort: Invalid value: 81: ` + mismatch}},
		{name: "filled in", change: ports(0, 0)},
		{name: "left out of a Pod", bare: true, change: ports(0, 0), want: []string{
			`spec.containers[0].ports[0].containerPort: Invalid value: 80: ` + mismatch,
			`spec.initContainers[0].ports[0].containerPort: Invalid value: 81: ` + mismatch}},
		{name: "left out of a template", bare: true, opts: Options{Template: true}, change: ports(0, 0)},
		{name: "another one elsewhere", change: withPorts(corev1.ContainerPort{ContainerPort: 80, HostPort: 81})},
	})
}
