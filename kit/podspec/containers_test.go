package podspec

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// many is n more containers after the named one.
func many(n int, first string) []corev1.Container {
	all := []corev1.Container{{Name: first, Image: "i"}}
	for i := range n {
		all = append(all, corev1.Container{Name: fmt.Sprintf("%s-%d", first, i), Image: "i"})
	}
	return all
}

func TestValidateContainers(t *testing.T) {
	runAll(t, []row{
		{name: "POD-002 nginx with one port and nothing else", change: func(*corev1.PodSpec) {}},
		{name: "POD-003 no container", change: func(s *corev1.PodSpec) { s.Containers = nil },
			want: []string{`spec.containers: Required value`}},
		{name: "200 containers", change: func(s *corev1.PodSpec) { s.Containers = many(199, s.Containers[0].Name) }},
		{name: "201 containers", change: func(s *corev1.PodSpec) { s.Containers = many(200, s.Containers[0].Name) },
			want: []string{`spec: Forbidden: a Pod has at most 200 containers of all kinds, not 201`}},
		{name: "201 containers of all kinds", change: func(s *corev1.PodSpec) {
			s.InitContainers, s.EphemeralContainers = many(99, "i"), make([]corev1.EphemeralContainer, 100)
		}, want: []string{`spec: Forbidden: a Pod has at most 200 containers of all kinds, not 201`}},
		{name: "NUL in what a process gets", change: first(func(c *corev1.Container) {
			c.Command, c.Args, c.WorkingDir, c.TerminationMessagePath = []string{"a", "b\x00"}, []string{"\x00"},
				"/\x00", "/m\x00"
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
				Exec: &corev1.ExecAction{Command: []string{"c\x00"}}}}
		}), want: []string{
			`spec.containers[0].args[0]: Invalid value: "\x00": must not contain a NUL character`,
			`spec.containers[0].command[1]: Invalid value: "b\x00": must not contain a NUL character`,
			`spec.containers[0].lifecycle.preStop.exec.command[0]: Invalid value: "c\x00": must not contain a NUL character`,
			`spec.containers[0].terminationMessagePath: Invalid value: "/m\x00": must not contain a NUL character`,
			`spec.containers[0].workingDir: Invalid value: "/\x00": must not contain a NUL character`,
		}},
		{name: "POD-007 several plain containers", change: also(corev1.Container{Name: "b", Image: "b"})},
		{name: "no name", change: first(func(c *corev1.Container) { c.Name = "" }),
			want: []string{`spec.containers[0].name: Required value`}},
		{name: "name in upper case", change: first(func(c *corev1.Container) { c.Name = "Nginx" }),
			want: []string{
				`spec.containers[0].name: Invalid value: "Nginx": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			}},
		{name: "name too long", change: first(func(c *corev1.Container) { c.Name = strings.Repeat("a", 64) }),
			want: []string{`spec.containers[0].name: Invalid value: "` + strings.Repeat("a", 64) +
				`": must be no more than 63 characters`}},
		{name: "POD-187 one name twice", change: also(corev1.Container{Name: "nginx", Image: "b"}),
			want: []string{`spec.containers[1].name: Duplicate value: "nginx"`}},
		{name: "POD-187 one name in both lists", change: withInit(corev1.Container{Name: "nginx", Image: "b"}),
			want: []string{`spec.initContainers[0].name: Duplicate value: "nginx"`}},
		{name: "no image", change: first(func(c *corev1.Container) { c.Image = "" }),
			want: []string{`spec.containers[0].image: Required value`}},
		{name: "image with a blank", change: first(func(c *corev1.Container) { c.Image = " nginx" }),
			want: []string{
				`spec.containers[0].image: Invalid value: " nginx": must not have leading or trailing whitespace`}},
		{name: "pull policy missing", bare: true, change: first(func(c *corev1.Container) { c.ImagePullPolicy = "" }),
			want: []string{`spec.containers[0].imagePullPolicy: Required value`}},
		{name: "pull policy unknown", change: first(func(c *corev1.Container) { c.ImagePullPolicy = "Sometimes" }),
			want: []string{
				`spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`,
			}},
		{name: "termination message policy unknown",
			change: first(func(c *corev1.Container) { c.TerminationMessagePolicy = "x" }),
			want: []string{
				`spec.containers[0].terminationMessagePolicy: Unsupported value: "x": supported values: "File", "FallbackToLogsOnError"`,
			}},
		{name: "resize policy", change: first(func(c *corev1.Container) {
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: "NotRequired"}}
		})},
		{name: "resize policy wrong in every way", change: func(s *corev1.PodSpec) {
			s.RestartPolicy = corev1.RestartPolicyNever
			s.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: "cpu", RestartPolicy: "RestartContainer"}, {ResourceName: "cpu", RestartPolicy: "x"},
				{ResourceName: "disk", RestartPolicy: "NotRequired"}}
		}, want: []string{
			`spec.containers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must be 'NotRequired' when ` + "`restartPolicy` is 'Never'",
			`spec.containers[0].resizePolicy[1]: Duplicate value: "cpu"`,
			`spec.containers[0].resizePolicy[1].restartPolicy: Unsupported value: "x": supported values: "NotRequired", "RestartContainer"`,
			`spec.containers[0].resizePolicy[2].resourceName: Unsupported value: "disk": supported values: "cpu", "memory"`,
		}},
	})
}

func TestValidateInitContainers(t *testing.T) {
	const forbidden = "Forbidden: may not be set for init containers without restartPolicy=Always"
	lifecycle := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
		Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	runAll(t, []row{
		{name: "POD-184 POD-211 two init containers", change: func(s *corev1.PodSpec) {
			withInit(corev1.Container{Name: "init-myservice", Image: "busybox:1.28"})(s)
			withInit(corev1.Container{Name: "init-mydb", Image: "busybox:1.28"})(s)
		}},
		{name: "POD-186 probes and hooks on an ordinary one",
			change: withInit(corev1.Container{Name: "i", Image: "i", Lifecycle: lifecycle,
				LivenessProbe: execProbe(), ReadinessProbe: execProbe(), StartupProbe: execProbe()}),
			want: []string{
				`spec.initContainers[0].lifecycle: ` + forbidden, `spec.initContainers[0].livenessProbe: ` + forbidden,
				`spec.initContainers[0].readinessProbe: ` + forbidden, `spec.initContainers[0].startupProbe: ` +
					forbidden,
			}},
		{name: "POD-235 POD-241 probes and hooks on a sidecar",
			change: withInit(corev1.Container{Name: "i", Image: "i", RestartPolicy: always, Lifecycle: lifecycle,
				LivenessProbe: execProbe(), ReadinessProbe: execProbe(), StartupProbe: execProbe()})},
		{name: "a sidecar's probes are checked",
			change: withInit(corev1.Container{Name: "i", Image: "i", RestartPolicy: always,
				LivenessProbe: &corev1.Probe{}}),
			want: []string{`spec.initContainers[0].livenessProbe: Required value: must specify a handler type`}},
		{name: "another restart policy",
			change: withInit(corev1.Container{Name: "i", Image: "i",
				RestartPolicy: ptr.To(corev1.ContainerRestartPolicy("Sometimes"))}),
			want: []string{`spec.initContainers[0].restartPolicy: Unsupported value: "Sometimes": supported values: ` +
				`"Always", "OnFailure", "Never"`}},
		{name: "POD-185 an init container is checked as any other",
			change: withInit(corev1.Container{Name: "i", Ports: []corev1.ContainerPort{{ContainerPort: 70000}}}),
			want: []string{
				`spec.initContainers[0].image: Required value`,
				`spec.initContainers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive`,
			}},
		{name: "one init container may use the host port of another",
			change: func(s *corev1.PodSpec) {
				ports := []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
				withInit(corev1.Container{Name: "i", Image: "i", Ports: ports})(s)
				withInit(corev1.Container{Name: "j", Image: "j", Ports: ports})(s)
				s.Containers[0].Ports = ports
			}},
	})
}

func TestValidateEphemeralContainers(t *testing.T) {
	const forbidden = "Forbidden: cannot be set for an Ephemeral Container"
	with := func(e corev1.EphemeralContainer) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			withVolume(corev1.VolumeSource{})(s)
			s.EphemeralContainers = append(s.EphemeralContainers, e)
		}
	}
	common := func(change func(*corev1.EphemeralContainerCommon)) func(*corev1.PodSpec) {
		c := corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"}
		change(&c)
		return with(corev1.EphemeralContainer{EphemeralContainerCommon: c})
	}
	runAll(t, []row{
		{name: "SAF-009 a device", change: func(s *corev1.PodSpec) {
			withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: "c"}})(s)
			s.EphemeralContainers = []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
					Name: "debug", Image: "busybox",
					VolumeDevices: []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/v"}}}}}
		}},
		{name: "SAF-009 name of an init container", change: func(s *corev1.PodSpec) {
			withInit(corev1.Container{Name: "first", Image: "i"})(s)
			common(func(c *corev1.EphemeralContainerCommon) { c.Name = "first" })(s)
		}, want: []string{`spec.ephemeralContainers[0].name: Duplicate value: "first"`}},
		{name: "SAF-009 name of another ephemeral container", change: func(s *corev1.PodSpec) {
			common(func(*corev1.EphemeralContainerCommon) {})(s)
			s.EphemeralContainers = append(s.EphemeralContainers, s.EphemeralContainers[0])
		}, want: []string{`spec.ephemeralContainers[1].name: Duplicate value: "debug"`}},
		{name: "SAF-009 no label for a name", change: common(func(c *corev1.EphemeralContainerCommon) { c.Name = "" }),
			want: []string{`spec.ephemeralContainers[0].name: Required value`}},
		{name: "SAF-009 everything that is accepted", change: with(corev1.EphemeralContainer{
			TargetContainerName: "nginx",
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debug", Image: "busybox", ImagePullPolicy: "Always", Command: []string{"sh"},
				Args: []string{"-c"}, WorkingDir: "/",
				Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
				EnvFrom: []corev1.EnvFromSource{
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{
						Name: "c"}}}},
				VolumeMounts:    []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
				SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
				Stdin:           true, StdinOnce: true, TTY: true, TerminationMessagePath: "/m",
				TerminationMessagePolicy: "File"},
		})},
		{name: "POD-254 POD-255 SAF-004 SAF-005 ports", change: common(func(c *corev1.EphemeralContainerCommon) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 80}}
		}), want: []string{`spec.ephemeralContainers[0].ports: ` + forbidden}},
		{name: "POD-255 SAF-006 SAF-008 probes", change: common(func(c *corev1.EphemeralContainerCommon) {
			c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = execProbe(), execProbe(), execProbe()
		}), want: []string{`spec.ephemeralContainers[0].livenessProbe: ` + forbidden,
			`spec.ephemeralContainers[0].readinessProbe: ` + forbidden, `spec.ephemeralContainers[0].startupProbe: ` +
				forbidden}},
		{name: "POD-256 SAF-007 resources", change: common(func(c *corev1.EphemeralContainerCommon) {
			c.Resources.Requests = quantities("cpu", "1")
		}), want: []string{`spec.ephemeralContainers[0].resources: ` + forbidden}},
		{name: "SAF-008 hooks, resizing, restarting, sub-paths",
			change: common(func(c *corev1.EphemeralContainerCommon) {
				c.Lifecycle = &corev1.Lifecycle{}
				c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: "NotRequired"}}
				c.RestartPolicy = always
				c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v", SubPath: "a"},
					{Name: "v", MountPath: "/w", SubPathExpr: "a"}}
			}), want: []string{
				`spec.ephemeralContainers[0].lifecycle: ` + forbidden, `spec.ephemeralContainers[0].resizePolicy: ` +
					forbidden,
				`spec.ephemeralContainers[0].restartPolicy: ` + forbidden,
				`spec.ephemeralContainers[0].volumeMounts[0].subPath: ` + forbidden,
				`spec.ephemeralContainers[0].volumeMounts[1].subPathExpr: ` + forbidden}},
		{name: "SAF-009 unknown target", change: with(corev1.EphemeralContainer{TargetContainerName: "nobody",
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"}}),
			want: []string{`spec.ephemeralContainers[0].targetContainerName: Not found: "nobody"`}},
		{name: "SAF-009 name of a main container",
			change: common(func(c *corev1.EphemeralContainerCommon) { c.Name = "nginx" }),
			want:   []string{`spec.ephemeralContainers[0].name: Duplicate value: "nginx"`}},
		{name: "SAF-002 in a template", opts: Options{Template: true},
			change: common(func(*corev1.EphemeralContainerCommon) {}),
			want:   []string{`spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template`}},
	})
}

func TestValidatePorts(t *testing.T) {
	ports := func(ports ...corev1.ContainerPort) func(*corev1.PodSpec) {
		return first(func(c *corev1.Container) { c.Ports = ports })
	}
	runAll(t, []row{
		{name: "no number", change: ports(corev1.ContainerPort{}),
			want: []string{`spec.containers[0].ports[0].containerPort: Required value`}},
		{name: "number out of range", change: ports(corev1.ContainerPort{ContainerPort: -1}),
			want: []string{
				`spec.containers[0].ports[0].containerPort: Invalid value: -1: must be between 1 and 65535, inclusive`,
			}},
		{name: "host port out of range", change: ports(corev1.ContainerPort{ContainerPort: 1, HostPort: 65536}),
			want: []string{
				`spec.containers[0].ports[0].hostPort: Invalid value: 65536: must be between 1 and 65535, inclusive`}},
		{name: "unknown protocol", change: ports(corev1.ContainerPort{ContainerPort: 1, Protocol: "tcp"}),
			want: []string{
				`spec.containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"`,
			}},
		{name: "name with an underscore", change: ports(corev1.ContainerPort{ContainerPort: 1, Name: "a_b"}),
			want: []string{
				`spec.containers[0].ports[0].name: Invalid value: "a_b": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`,
			}},
		{name: "one name twice", change: ports(corev1.ContainerPort{ContainerPort: 1, Name: "a"},
			corev1.ContainerPort{ContainerPort: 2, Name: "a"}),
			want: []string{`spec.containers[0].ports[1].name: Duplicate value: "a"`}},
		{name: "host address that is none", change: ports(corev1.ContainerPort{ContainerPort: 1, HostIP: "localhost"}),
			want: []string{
				`spec.containers[0].ports[0].hostIP: Invalid value: "localhost": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
			}},
		{name: "one host port twice", change: func(s *corev1.PodSpec) {
			ports(corev1.ContainerPort{ContainerPort: 1, HostPort: 80})(s)
			also(corev1.Container{Name: "b", Image: "b",
				Ports: []corev1.ContainerPort{{ContainerPort: 2, HostPort: 80}}})(s)
		}, want: []string{`spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"`}},
		{name: "one host port for two protocols", change: ports(
			corev1.ContainerPort{ContainerPort: 1, HostPort: 80}, corev1.ContainerPort{ContainerPort: 2, HostPort: 80,
				Protocol: "UDP"})},
		{name: "another port in the host's network", change: func(s *corev1.PodSpec) {
			s.HostNetwork = true
			ports(corev1.ContainerPort{ContainerPort: 80, HostPort: 81})(s)
		},
			want: []string{"spec.containers[0].ports[0].containerPort: Invalid value: 80: must match `hostPort` when " +
				"`hostNetwork` is true"}},
		{name: "no host port in a template", bare: true, opts: Options{Template: true},
			change: func(s *corev1.PodSpec) { s.HostNetwork = true }},
		{name: "another port in a template", bare: true, opts: Options{Template: true},
			change: func(s *corev1.PodSpec) {
				s.HostNetwork = true
				s.Containers[0].Ports[0].HostPort = 81
			},
			want: []string{"spec.containers[0].ports[0].containerPort: Invalid value: 80: must match `hostPort` when " +
				"`hostNetwork` is true"}},
		{name: "the same port in the host's network", change: func(s *corev1.PodSpec) { s.HostNetwork = true }},
	})
}
