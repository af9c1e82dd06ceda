package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Rules of a container that hold in every list, and what one list allows that another does not.
func TestContainersOfAllKinds(t *testing.T) {
	ephemeral := func(e corev1.EphemeralContainer) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			withInit(corev1.Container{Name: "first", Image: "i"})(s)
			s.EphemeralContainers = append(s.EphemeralContainers, corev1.EphemeralContainer{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "one", Image: "i"}}, e)
		}
	}
	debug := func(change func(*corev1.EphemeralContainerCommon)) corev1.EphemeralContainer {
		c := corev1.EphemeralContainerCommon{Name: "debug", Image: "i"}
		change(&c)
		return corev1.EphemeralContainer{EphemeralContainerCommon: c}
	}
	target := func(name string) corev1.EphemeralContainer {
		e := debug(func(*corev1.EphemeralContainerCommon) {})
		e.TargetContainerName = name
		return e
	}
	resize := func(policy corev1.RestartPolicy, resource corev1.ResourceName,
		restart corev1.ResourceResizeRestartPolicy) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.RestartPolicy = policy
			s.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: resource,
				RestartPolicy: restart}}
		}
	}
	const main, init = "spec.containers[0]", "spec.initContainers[0]"
	runAll(t, []row{
		{name: "POD-187 one name of two init containers", change: func(s *corev1.PodSpec) {
			withInit(corev1.Container{Name: "i", Image: "i"})(s)
			withInit(corev1.Container{Name: "i", Image: "j"})(s)
		}, want: []string{`spec.initContainers[1].name: Duplicate value: "i"`}},
		{name: "two containers without names", change: func(s *corev1.PodSpec) {
			s.Containers = []corev1.Container{{Image: "a"}, {Image: "b"}}
		}, want: []string{main + `.name: Required value`, `spec.containers[1].name: Required value`}},
		{name: "blank after the image", change: first(func(c *corev1.Container) { c.Image = "nginx\n" }),
			want: []string{main + `.image: Invalid value: "nginx\n": must not have leading or trailing whitespace`}},
		{name: "all pull policies", change: func(s *corev1.PodSpec) {
			s.Containers[0].ImagePullPolicy = "Always"
			also(corev1.Container{Name: "b", Image: "b", ImagePullPolicy: "IfNotPresent"})(s)
			also(corev1.Container{Name: "c", Image: "c", ImagePullPolicy: "Never"})(s)
		}},
		{name: "last output as the message", change: first(func(c *corev1.Container) {
			c.TerminationMessagePolicy = "FallbackToLogsOnError"
		})},
		{name: "memory resized by restart", change: resize("Always", "memory", "RestartContainer")},
		{name: "cpu resized by restart on failure", change: resize("OnFailure", "cpu", "RestartContainer")},
		{name: "resized in place and never restarted", change: resize("Never", "cpu", "NotRequired")},
		{name: "resize policies of nothing", change: resize("Always", "", ""), want: []string{
			main + `.resizePolicy[0].resourceName: Required value`,
			main + `.resizePolicy[0].restartPolicy: Required value`}},
		{name: "POD-241 hooks of a sidecar are checked", change: withInit(corev1.Container{Name: "i", Image: "i",
			RestartPolicy: always, Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}}}),
			want: []string{init + `.lifecycle.preStop: Required value: must specify a handler type`}},
		{name: "POD-185 settings of an init container", change: withInit(corev1.Container{Name: "i", Image: "i",
			Args: []string{"\x00"}, Env: []corev1.EnvVar{{Name: "="}},
			EnvFrom:         []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}},
			Resources:       corev1.ResourceRequirements{Requests: quantities("pods", "1")},
			SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](-1)}}),
			want: []string{init + `.args[0]: Invalid value: "\x00": must not contain a NUL character`,
				init + `.env[0].name: Invalid value: "=": a valid environment variable name must consist only of ` +
					`printable ASCII characters other than '='`,
				init + `.envFrom[0].configMapRef.name: Required value`,
				init + `.resources.requests[pods]: Invalid value: "pods": must be a standard resource for containers`,
				init + `.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive`}},
		{
			name: "restart rules of an init container",
			change: withInit(corev1.Container{Name: "i", Image: "i",
				RestartPolicyRules: []corev1.ContainerRestartRule{{Action: "Restart"}}}),
			want: []string{
				init + `.restartPolicy: Required value: must specify restartPolicy when restart rules are used`,
				init + `.restartPolicyRules[0].exitCodes: Required value: must be specified`,
			},
		},
		{name: "SAF-009 an init container as target", change: ephemeral(target("first"))},
		{name: "SAF-009 another ephemeral container as target", change: ephemeral(target("one")),
			want: []string{`spec.ephemeralContainers[1].targetContainerName: Not found: "one"`}},
		{name: "SAF-009 settings of an ephemeral container", change: ephemeral(debug(
			func(c *corev1.EphemeralContainerCommon) {
				c.Image, c.Command = "", []string{"\x00"}
				c.VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: "/x"}}
			})), want: []string{
			`spec.ephemeralContainers[1].command[0]: Invalid value: "\x00": must not contain a NUL character`,
			`spec.ephemeralContainers[1].image: Required value`,
			`spec.ephemeralContainers[1].volumeMounts[0].name: Not found: "x"`}},
		{name: "SAF-008 restart rules", change: ephemeral(debug(func(c *corev1.EphemeralContainerCommon) {
			c.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: "Restart"}}
		})), want: []string{
			`spec.ephemeralContainers[1].restartPolicyRules: Forbidden: cannot be set for an Ephemeral Container`}},
	})
}

// Every kind of probe and hook is checked separately, and each bound with the value beside it.
func TestProbesOfAllKinds(t *testing.T) {
	probe := func(change func(*corev1.Probe)) *corev1.Probe {
		p := execProbe()
		change(p)
		return p
	}
	readiness := func(change func(*corev1.Probe)) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.ReadinessProbe = probe(change) })
	}
	startup := func(change func(*corev1.Probe)) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.StartupProbe = probe(change) })
	}
	sleep := func(seconds int64, grace *int64) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.TerminationGracePeriodSeconds = grace
			s.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
				Sleep: &corev1.SleepAction{Seconds: seconds}}}
		}
	}
	hook := func(h corev1.LifecycleHandler) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{PostStart: &h} })
	}
	const c = "spec.containers[0]."
	const negative = ": Invalid value: -1: must be greater than or equal to 0"
	const tooLong = "must be non-negative and less than terminationGracePeriodSeconds"
	runAll(t, []row{
		{name: "readiness by nothing", change: readiness(func(p *corev1.Probe) { p.Exec = nil }),
			want: []string{c + `readinessProbe: Required value: must specify a handler type`}},
		{name: "startup by nothing", change: startup(func(p *corev1.Probe) { p.Exec = nil }),
			want: []string{c + `startupProbe: Required value: must specify a handler type`}},
		{name: "negative successes of a readiness probe", change: readiness(func(p *corev1.Probe) {
			p.SuccessThreshold = -1
		}), want: []string{c + `readinessProbe.successThreshold` + negative}},
		{name: "negative numbers of a startup probe", change: startup(func(p *corev1.Probe) {
			p.SuccessThreshold, p.FailureThreshold = -1, -1
		}), want: []string{c + `startupProbe.failureThreshold` + negative, c + `startupProbe.successThreshold` +
			negative,
			c + `startupProbe.successThreshold: Invalid value: -1: must be 1`}},
		{name: "least grace of a startup probe", change: startup(func(p *corev1.Probe) {
			p.TerminationGracePeriodSeconds = ptr.To[int64](1)
		})},
		{name: "no grace of a startup probe", change: startup(func(p *corev1.Probe) {
			p.TerminationGracePeriodSeconds = ptr.To[int64](0)
		}), want: []string{
			c + `startupProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0`}},
		{name: "POD-133 three ways at once", change: readiness(func(p *corev1.Probe) {
			p.HTTPGet, p.TCPSocket = httpGet(80), &corev1.TCPSocketAction{}
		}), want: []string{c + `readinessProbe.httpGet: Forbidden: may not specify more than 1 handler type`,
			c + `readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type`}},
		{name: "greatest port and a header", change: readiness(func(p *corev1.Probe) {
			p.Exec, p.HTTPGet = nil, httpGet(65535)
			p.HTTPGet.HTTPHeaders = []corev1.HTTPHeader{{Name: "X-A", Value: "a b"}}
		})},
		{name: "port above the greatest", change: readiness(func(p *corev1.Probe) {
			p.Exec, p.TCPSocket = nil, &corev1.TCPSocketAction{Port: intstr.FromInt32(65536)}
		}), want: []string{
			c + `readinessProbe.tcpSocket.port: Invalid value: 65536: must be between 1 and 65535, inclusive`}},
		{name: "no port of grpc", change: readiness(func(p *corev1.Probe) {
			p.Exec, p.GRPC = nil, &corev1.GRPCAction{}
		}), want: []string{c + `readinessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive`}},
		{name: "NUL in a probe's command", change: readiness(func(p *corev1.Probe) {
			p.Exec.Command = []string{"a", "\x00"}
		}), want: []string{
			c + `readinessProbe.exec.command[1]: Invalid value: "\x00": must not contain a NUL character`}},
		{name: "a hook's port", change: hook(corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{}}),
			want: []string{
				c + `lifecycle.postStart.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive`}},
		{name: "a hook's command", change: hook(corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}),
			want: []string{c + `lifecycle.postStart.exec.command: Required value`}},
		{name: "no sleep", change: sleep(0, nil)},
		{name: "sleep as long as the Pod's own grace", change: sleep(5, ptr.To[int64](5))},
		{name: "sleep longer than the Pod's own grace", change: sleep(6, ptr.To[int64](5)),
			want: []string{c + `lifecycle.preStop.sleep: Invalid value: 6: ` + tooLong + ` (5)`}},
		{name: "no sleep without grace", change: sleep(0, ptr.To[int64](0))},
		{name: "sleep without a default grace", bare: true, change: sleep(31, nil),
			want: []string{c + `lifecycle.preStop.sleep: Invalid value: 31: ` + tooLong + ` (30)`}},
	})
}
