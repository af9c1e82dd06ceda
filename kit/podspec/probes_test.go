package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestValidateProbes(t *testing.T) {
	liveness := func(p corev1.Probe) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.LivenessProbe = &p })
	}
	handler := func(h corev1.ProbeHandler) func(*corev1.PodSpec) { return liveness(corev1.Probe{ProbeHandler: h}) }
	const at = "spec.containers[0].livenessProbe"
	runAll(t, []row{
		{name: "POD-133 exec",
			change: handler(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}})},
		{name: "POD-133 httpGet", change: handler(corev1.ProbeHandler{HTTPGet: httpGet(80)})},
		{name: "POD-133 tcpSocket by name",
			change: handler(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}})},
		{name: "POD-133 grpc", change: handler(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 80}})},
		{name: "POD-133 none", change: liveness(corev1.Probe{}),
			want: []string{at + `: Required value: must specify a handler type`}},
		{name: "POD-133 two", change: handler(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}},
			GRPC: &corev1.GRPCAction{Port: 1}}),
			want: []string{at + `.grpc: Forbidden: may not specify more than 1 handler type`}},
		{name: "exec without a command", change: handler(corev1.ProbeHandler{Exec: &corev1.ExecAction{}}),
			want: []string{at + `.exec.command: Required value`}},
		{name: "port out of range", change: handler(corev1.ProbeHandler{HTTPGet: httpGet(0)}),
			want: []string{at + `.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive`}},
		{name: "port name in upper case",
			change: handler(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("HTTP!")}}),
			want: []string{at +
				`.tcpSocket.port: Invalid value: "HTTP!": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`,
				at + `.tcpSocket.port: Invalid value: "HTTP!": must contain at least one letter (a-z)`}},
		{name: "grpc port out of range", change: handler(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 65536}}),
			want: []string{at + `.grpc.port: Invalid value: 65536: must be between 1 and 65535, inclusive`}},
		{name: "unknown scheme",
			change: handler(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt(1),
				Scheme: "ftp"}}),
			want: []string{at + `.httpGet.scheme: Unsupported value: "ftp": supported values: "HTTP", "HTTPS"`}},
		{name: "malformed header",
			change: handler(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt(1),
				HTTPHeaders: []corev1.HTTPHeader{{Name: "a b"}}}}),
			want: []string{at +
				`.httpGet.httpHeaders[0].name: Invalid value: "a b": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')`}},
		{name: "POD-149 negative numbers", change: liveness(corev1.Probe{ProbeHandler: execProbe().ProbeHandler,
			InitialDelaySeconds: -1, TimeoutSeconds: -1, PeriodSeconds: -1, FailureThreshold: -1}),
			want: []string{
				at + `.failureThreshold: Invalid value: -1: must be greater than or equal to 0`,
				at + `.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0`,
				at + `.periodSeconds: Invalid value: -1: must be greater than or equal to 0`,
				at + `.timeoutSeconds: Invalid value: -1: must be greater than or equal to 0`}},
		{name: "POD-149 a startup probe of its own", change: first(func(c *corev1.Container) {
			c.LivenessProbe, c.StartupProbe = execProbe(), execProbe()
			c.StartupProbe.InitialDelaySeconds, c.StartupProbe.FailureThreshold, c.StartupProbe.PeriodSeconds = 5, 30, 1
		})},
		{name: "successes of a liveness probe", change: liveness(corev1.Probe{ProbeHandler: execProbe().ProbeHandler,
			SuccessThreshold: 2}),
			want: []string{at + `.successThreshold: Invalid value: 2: must be 1`}},
		{name: "successes of a startup probe",
			change: first(func(c *corev1.Container) {
				c.StartupProbe = execProbe()
				c.StartupProbe.SuccessThreshold = 2
			}),
			want: []string{`spec.containers[0].startupProbe.successThreshold: Invalid value: 2: must be 1`}},
		{name: "successes of a readiness probe",
			change: first(func(c *corev1.Container) {
				c.ReadinessProbe = execProbe()
				c.ReadinessProbe.SuccessThreshold = 2
			})},
		{name: "no grace", change: liveness(corev1.Probe{ProbeHandler: execProbe().ProbeHandler,
			TerminationGracePeriodSeconds: ptr.To[int64](0)}),
			want: []string{at + `.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0`}},
		{name: "grace of a readiness probe", change: first(func(c *corev1.Container) {
			c.ReadinessProbe = execProbe()
			c.ReadinessProbe.TerminationGracePeriodSeconds = ptr.To[int64](1)
		}),
			want: []string{
				`spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes`,
			}},
	})
}

func TestValidateLifecycle(t *testing.T) {
	preStop := func(h corev1.LifecycleHandler) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{PreStop: &h} })
	}
	runAll(t, []row{
		{name: "postStart and preStop", change: first(func(c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{HTTPGet: httpGet(80)},
				PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 30}}}
		})},
		{name: "nothing to do", change: preStop(corev1.LifecycleHandler{}),
			want: []string{`spec.containers[0].lifecycle.preStop: Required value: must specify a handler type`}},
		{name: "nothing to do after the start",
			change: first(func(c *corev1.Container) {
				c.Lifecycle = &corev1.Lifecycle{
					PostStart: &corev1.LifecycleHandler{}}
			}),
			want: []string{`spec.containers[0].lifecycle.postStart: Required value: must specify a handler type`}},
		{name: "two things to do", change: preStop(corev1.LifecycleHandler{HTTPGet: httpGet(80),
			Sleep: &corev1.SleepAction{}}),
			want: []string{
				`spec.containers[0].lifecycle.preStop.sleep: Forbidden: may not specify more than 1 handler type`}},
		{name: "sleeps longer than the Pod may",
			change: preStop(corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 31}}),
			want: []string{
				`spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)`,
			}},
		{name: "sleeps backwards", change: preStop(corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: -1}}),
			want: []string{
				`spec.containers[0].lifecycle.preStop.sleep: Invalid value: -1: must be non-negative and less than terminationGracePeriodSeconds (30)`,
			}},
	})
}
