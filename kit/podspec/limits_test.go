package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Where the length or the size of one field ends: the last value that passes and the first that does not.
func TestSpecBounds(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	searches := func(last int) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.DNSConfig = &corev1.PodDNSConfig{}
			// 17 names of 119 characters and the blanks between them are 2040 characters with the last blank.
			for range 17 {
				s.DNSConfig.Searches = append(s.DNSConfig.Searches, a(59)+"."+a(59))
			}
			s.DNSConfig.Searches = append(s.DNSConfig.Searches, a(last))
		}
	}
	dns := func(nameservers, searches int) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.DNSConfig = &corev1.PodDNSConfig{}
			for range nameservers {
				s.DNSConfig.Nameservers = append(s.DNSConfig.Nameservers, "::1")
			}
			for range searches {
				s.DNSConfig.Searches = append(s.DNSConfig.Searches, "a")
			}
		}
	}
	deadline := func(seconds int64) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = &seconds }
	}
	override := func(name string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.HostnameOverride = &name }
	}
	tooManyCharacters := `spec.dnsConfig.searches: Invalid value: ["` + strings.Repeat(a(59)+"."+a(59)+`","`, 17) +
		a(9) + `"]: must not have more than 2048 characters (including spaces) in the search list`
	runAll(t, []row{
		{name: "most containers of all kinds", change: func(s *corev1.PodSpec) {
			s.InitContainers = many(98, "i")
			for _, c := range many(99, "e") {
				s.EphemeralContainers = append(s.EphemeralContainers, corev1.EphemeralContainer{
					EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)})
			}
		}},
		{name: "longest deadline", change: deadline(2147483647)},
		{name: "deadline too long", change: deadline(2147483648), want: []string{
			`spec.activeDeadlineSeconds: Invalid value: 2147483648: must be between 1 and 2147483647, inclusive`}},
		{name: "longest name of a container", change: first(func(c *corev1.Container) { c.Name = a(63) })},
		{name: "longest name of a volume", change: func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: a(63)}}
		}},
		{name: "name of a volume too long", change: func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: a(64)}}
		}, want: []string{`spec.volumes[0].name: Invalid value: "` + a(64) + `": must be no more than 63 characters`}},
		{name: "longest hostname", change: func(s *corev1.PodSpec) { s.Hostname, s.Subdomain = a(63), a(63) }},
		{name: "hostname too long", change: func(s *corev1.PodSpec) { s.Hostname = a(64) },
			want: []string{`spec.hostname: Invalid value: "` + a(64) + `": must be no more than 63 characters`}},
		{name: "longest other hostname", change: override(a(64))},
		{name: "an empty other hostname", change: override("")},
		{name: "a malformed other hostname", change: override("A"),
			want: []string{`spec.hostnameOverride: Invalid value: "A": ` + notASub}},
		{name: "another hostname, not in full", change: func(s *corev1.PodSpec) {
			s.HostnameOverride, s.SetHostnameAsFQDN = ptr.To("a"), ptr.To(false)
		}},
		{name: "most name servers and search paths", change: dns(3, 32)},
		{name: "a name server too many", change: dns(4, 0), want: []string{
			`spec.dnsConfig.nameservers: Invalid value: ["::1","::1","::1","::1"]: must not have more than 3 nameservers`,
		}},
		{name: "longest search list", change: searches(8)},
		{name: "a search list too long", change: searches(9), want: []string{tooManyCharacters}},
		{name: "a search path that ends in two dots", change: func(s *corev1.PodSpec) {
			s.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"a.."}}
		}, want: []string{`spec.dnsConfig.searches[0]: Invalid value: "a..": a lowercase RFC 1123 subdomain must ` +
			`consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an ` +
			`alphanumeric character (e.g. 'example.com', regex used for validation is ` +
			`'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')`}},
		{name: "longest driver", change: withVolume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: a(63)}})},
		{name: "driver too long", change: withVolume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: a(64)}}),
			want: []string{`spec.volumes[0].csi.driver: Invalid value: "` + a(64) +
				`": must be no more than 63 characters`}},
		{name: "an empty directory without room", change: withVolume(corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(quantities("x", "0")["x"])}})},
	})
}

// Fields that only a Pod which was never defaulted can lack.
func TestFieldsThatDefaultingFills(t *testing.T) {
	runAll(t, []row{
		{name: "restart policy", bare: true, change: func(s *corev1.PodSpec) { s.RestartPolicy = "" },
			want: []string{`spec.restartPolicy: Required value`}},
		{name: "DNS policy", bare: true, change: func(s *corev1.PodSpec) { s.DNSPolicy = "" },
			want: []string{`spec.dnsPolicy: Required value`}},
		{name: "scheduler", bare: true, change: func(s *corev1.PodSpec) { s.SchedulerName = "" },
			want: []string{`spec.schedulerName: Required value`}},
		{name: "termination message policy", bare: true,
			change: first(func(c *corev1.Container) { c.TerminationMessagePolicy = "" }),
			want:   []string{`spec.containers[0].terminationMessagePolicy: Required value`}},
		{name: "path and scheme of a probe", bare: true, change: first(func(c *corev1.Container) {
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: httpGet(80)}}
		}), want: []string{
			`spec.containers[0].readinessProbe.httpGet.path: Required value`,
			`spec.containers[0].readinessProbe.httpGet.scheme: Unsupported value: "": supported values: "HTTP", "HTTPS"`,
		}},
		{name: "pull policy of an image volume", bare: true,
			change: withVolume(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "r"}}),
			want:   []string{`spec.volumes[0].image.pullPolicy: Required value`}},
		{name: "security context", bare: true, change: func(s *corev1.PodSpec) { s.SecurityContext = nil }},
	})
}

func TestReferences(t *testing.T) {
	runAll(t, []row{
		{name: "well-formed", change: func(s *corev1.PodSpec) {
			s.ServiceAccountName, s.PriorityClassName, s.RuntimeClassName = "a.b", "system-node-critical", ptr.To("c.d")
			s.NodeName, s.SchedulerName = "n.example.com", "s.example.com"
			s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}, {Name: "A"}}
			s.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority)
			s.NodeSelector = map[string]string{"example.com/zone": "a"}
		}},
		{name: "the second pull secret", change: func(s *corev1.PodSpec) {
			s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}, {}}
		}, want: []string{`spec.imagePullSecrets[1].name: Required value`}},
		{name: "volumes without names", change: func(s *corev1.PodSpec) { s.Volumes = make([]corev1.Volume, 2) },
			want: []string{`spec.volumes[0].name: Required value`, `spec.volumes[1].name: Required value`}},
		{name: "malformed names of volumes", change: func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{
				{Name: "a.b"},
				{Name: "c", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "A"}}},
				{Name: "d", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "a_b",
					NodePublishSecretRef: &corev1.LocalObjectReference{Name: "A"}}}},
				{Name: "e", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/\x00"}}},
			}
		}, want: []string{`spec.volumes[0].name: Invalid value: "a.b": must not contain dots`,
			`spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "A": ` + notASub,
			`spec.volumes[2].csi.driver: Invalid value: "a_b": ` + notASub,
			`spec.volumes[2].csi.nodePublishSecretRef.name: Invalid value: "A": ` + notASub,
			`spec.volumes[3].hostPath.path: Invalid value: "/\x00": must not contain a NUL character`}},
		{name: "toleration for ever, and for no key", change: func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: "k", Operator: "Equal", Effect: "PreferNoSchedule"},
				{Operator: "Equal"}}
		}, want: []string{"spec.tolerations[1].operator: Invalid value: \"Equal\": operator must be Exists when " +
			"`key` is empty, which means \"match all values and all keys\""}},
		{name: "toleration for seconds of every effect", change: func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: "k", TolerationSeconds: ptr.To[int64](-1)}}
		}, want: []string{
			`spec.tolerations[0].effect: Invalid value: "": effect must be 'NoExecute' when ` +
				"`tolerationSeconds` is set"}},
		{name: "POD-030 a gate on a Pod that has no node", change: func(s *corev1.PodSpec) {
			s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}, {Name: "b"}}
		}},
		{name: "SCH-078 least skew and domains", change: func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
				WhenUnsatisfiable: "DoNotSchedule", MinDomains: ptr.To[int32](1)}}
		}},
		{name: "SCH-078 one action for two topologies", change: func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule"},
				{MaxSkew: 1, TopologyKey: "host", WhenUnsatisfiable: "DoNotSchedule"}}
		}},
	})
}
