package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	notAName = `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
	notASub  = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
)

func inGroup(name *string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: name} }
}

func TestValidateSpecFields(t *testing.T) {
	runAll(t, []row{
		{name: "POD-092 POD-039 restart policies",
			change: func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyOnFailure }},
		{name: "POD-092 never", change: func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever }},
		{name: "POD-092 another restart policy", change: func(s *corev1.PodSpec) { s.RestartPolicy = "Sometimes" },
			want: []string{
				`spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`,
			}},
		{name: "deadline", change: func(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](1) }},
		{name: "POD-053 no deadline at all",
			change: func(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](0) },
			want: []string{
				`spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive`}},
		{name: "POD-054 a deadline lowered to nothing", opts: Options{DeadlineLowered: true},
			change: func(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](0) }},
		{name: "POD-054 a deadline lowered further", opts: Options{DeadlineLowered: true},
			change: func(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](-1) },
			want: []string{
				`spec.activeDeadlineSeconds: Invalid value: -1: must be between 0 and 2147483647, inclusive`}},
		{name: "scheduling group", change: inGroup(ptr.To("workers.training"))},
		{name: "no scheduling group", change: inGroup(nil), want: []string{
			"spec.schedulingGroup: Invalid value: \"\": must specify one of: `podGroupName`"}},
		{name: "malformed scheduling group", change: inGroup(ptr.To("a_b")), want: []string{
			`spec.schedulingGroup.podGroupName: Invalid value: "a_b": ` + notASub}},
		{name: "scheduling group without a name", change: inGroup(ptr.To("")), want: []string{
			`spec.schedulingGroup.podGroupName: Invalid value: "": ` + notASub}},
		{name: "SCH-023 preemption policy",
			change: func(s *corev1.PodSpec) { s.PreemptionPolicy = ptr.To(corev1.PreemptNever) }},
		{name: "SCH-023 another preemption policy",
			change: func(s *corev1.PodSpec) { s.PreemptionPolicy = ptr.To(corev1.PreemptionPolicy("x")) },
			want: []string{
				`spec.preemptionPolicy: Unsupported value: "x": supported values: "PreemptLowerPriority", "Never"`}},
		{name: "malformed names", change: func(s *corev1.PodSpec) {
			s.ServiceAccountName, s.PriorityClassName, s.RuntimeClassName, s.NodeName, s.SchedulerName = "A", "A",
				ptr.To(""), "A", "A"
			s.DeprecatedServiceAccount, s.ImagePullSecrets = "A", []corev1.LocalObjectReference{{}}
		}, want: []string{
			`spec.imagePullSecrets[0].name: Required value`,
			`spec.nodeName: Invalid value: "A": ` + notASub, `spec.priorityClassName: Invalid value: "A": ` + notASub,
			`spec.runtimeClassName: Invalid value: "": ` + notASub, `spec.schedulerName: Invalid value: "A": ` +
				notASub,
			`spec.serviceAccountName: Invalid value: "A": ` + notASub}},
		{name: "malformed node selector",
			change: func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"a b": "c"} },
			want:   []string{`spec.nodeSelector: Invalid value: "a b": ` + notAName}},
		{name: "POD-117 readiness gates", change: func(s *corev1.PodSpec) {
			s.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "www.example.com/feature-1"}}
		}},
		{name: "POD-118 malformed readiness gate",
			change: func(s *corev1.PodSpec) { s.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "a b"}} },
			want:   []string{`spec.readinessGates[0].conditionType: Invalid value: "a b": ` + notAName}},
		{name: "POD-030 scheduling gates",
			change: func(s *corev1.PodSpec) {
				s.SchedulingGates = []corev1.PodSchedulingGate{
					{Name: "example.com/a"}}
			}},
		{name: "scheduling gates wrong in every way", change: func(s *corev1.PodSpec) {
			s.SchedulingGates, s.NodeName = []corev1.PodSchedulingGate{{Name: "a b"}, {Name: "c"}, {Name: "c"}}, "n"
		}, want: []string{
			`spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared`,
			`spec.schedulingGates[0]: Invalid value: "a b": ` + notAName,
			`spec.schedulingGates[2]: Duplicate value: "c"`}},
	})
}

func TestValidateTolerations(t *testing.T) {
	tolerations := func(tolerations ...corev1.Toleration) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Tolerations = tolerations }
	}
	const at = "spec.tolerations[0]"
	runAll(t, []row{
		{name: "everything", change: tolerations(corev1.Toleration{Operator: "Exists"},
			corev1.Toleration{Key: "k", Value: "v", Effect: "NoSchedule"},
			corev1.Toleration{Key: "k", Operator: "Exists", Effect: "NoExecute",
				TolerationSeconds: ptr.To[int64](300)})},
		{name: "no key", change: tolerations(corev1.Toleration{Value: "v"}),
			want: []string{at + ".operator: Invalid value: \"\": operator must be Exists when `key` is empty, which " +
				"means \"match all values and all keys\""}},
		{name: "malformed key", change: tolerations(corev1.Toleration{Key: "a b"}),
			want: []string{at + `.key: Invalid value: "a b": ` + notAName}},
		{name: "malformed value", change: tolerations(corev1.Toleration{Key: "k", Value: "a b"}),
			want: []string{at +
				`.operator: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`}},
		{name: "a value of what exists", change: tolerations(corev1.Toleration{Key: "k", Operator: "Exists",
			Value: "v"}),
			want: []string{at + ".operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'"}},
		{name: "numbers", change: tolerations(corev1.Toleration{Key: "k", Operator: "Gt", Value: "-7"},
			corev1.Toleration{Key: "k", Operator: "Lt", Value: "9223372036854775807"})},
		{name: "no number", change: tolerations(corev1.Toleration{Key: "k", Operator: "Gt", Value: "1.5"}),
			want: []string{at + ".value: Invalid value: \"1.5\": must be a valid decimal integer in canonical form"}},
		{name: "too great a number", change: tolerations(corev1.Toleration{Key: "k", Operator: "Lt",
			Value: "9223372036854775808"}),
			want: []string{at + ".value: Invalid value: \"9223372036854775808\": must be a 64-bit integer"}},
		{name: "a number of any key", change: tolerations(corev1.Toleration{Operator: "Gt", Value: "1"}),
			want: []string{at + ".operator: Invalid value: \"Gt\": operator must be Exists when `key` is empty, " +
				"which means \"match all values and all keys\""}},
		{name: "unknown operator", change: tolerations(corev1.Toleration{Key: "k", Operator: "Ge", Value: "1"}),
			want: []string{at + `.operator: Unsupported value: "Ge": supported values: "Equal", "Exists", "Gt", "Lt"`}},
		{name: "unknown effect", change: tolerations(corev1.Toleration{Key: "k", Effect: "x"}),
			want: []string{at +
				`.effect: Unsupported value: "x": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`}},
		{name: "seconds without eviction", change: tolerations(corev1.Toleration{Key: "k", Effect: "NoSchedule",
			TolerationSeconds: ptr.To[int64](1)}),
			want: []string{at +
				".effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set"}},
	})
}

func TestValidateSpread(t *testing.T) {
	spread := func(change func(*corev1.TopologySpreadConstraint)) func(*corev1.PodSpec) {
		c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
		change(&c)
		return func(s *corev1.PodSpec) { s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, c) }
	}
	const at = "spec.topologySpreadConstraints[0]"
	runAll(t, []row{
		{name: "SCH-072 SCH-076 hard and soft", change: func(s *corev1.PodSpec) {
			spread(func(c *corev1.TopologySpreadConstraint) {
				c.MinDomains, c.NodeAffinityPolicy, c.NodeTaintsPolicy = ptr.To[int32](2),
					ptr.To(corev1.NodeInclusionPolicyHonor), ptr.To(corev1.NodeInclusionPolicyIgnore)
				c.MatchLabelKeys = []string{"pod-template-hash"}
			})(s)
			spread(func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway })(s)
		}},
		{name: "SCH-075 no skew", change: spread(func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = 0 }),
			want: []string{at + `.maxSkew: Invalid value: 0: must be greater than zero`}},
		{name: "SCH-075 negative skew", change: spread(func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = -1 }),
			want: []string{at + `.maxSkew: Invalid value: -1: must be greater than zero`}},
		{name: "SCH-076 another action",
			change: spread(func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = "x" }),
			want: []string{at +
				`.whenUnsatisfiable: Unsupported value: "x": supported values: "DoNotSchedule", "ScheduleAnyway"`}},
		{name: "SCH-077 no action", change: spread(func(c *corev1.TopologySpreadConstraint) {
			c.WhenUnsatisfiable = ""
		}),
			want: []string{at +
				`.whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"`}},
		{name: "no topology key", change: spread(func(c *corev1.TopologySpreadConstraint) { c.TopologyKey = "" }),
			want: []string{at + `.topologyKey: Required value: can not be empty`}},
		{name: "SCH-078 no domains", change: spread(func(c *corev1.TopologySpreadConstraint) {
			c.MinDomains = ptr.To[int32](0)
		}),
			want: []string{at + `.minDomains: Invalid value: 0: must be greater than zero`}},
		{name: "SCH-078 domains of a soft one", change: spread(func(c *corev1.TopologySpreadConstraint) {
			c.MinDomains, c.WhenUnsatisfiable = ptr.To[int32](1), corev1.ScheduleAnyway
		}),
			want: []string{at +
				`.minDomains: Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway`}},
		{name: "SCH-078 one constraint twice", change: func(s *corev1.PodSpec) {
			spread(func(*corev1.TopologySpreadConstraint) {})(s)
			spread(func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = 2 })(s)
		},
			want: []string{
				`spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"`,
			}},
		{name: "SCH-078 unknown policies", change: spread(func(c *corev1.TopologySpreadConstraint) {
			c.NodeAffinityPolicy, c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicy("x")),
				ptr.To(corev1.NodeInclusionPolicy("y"))
		}), want: []string{at + `.nodeAffinityPolicy: Unsupported value: "x": supported values: "Honor", "Ignore"`,
			at + `.nodeTaintsPolicy: Unsupported value: "y": supported values: "Honor", "Ignore"`}},
		{name: "SCH-078 keys without a selector",
			change: spread(func(c *corev1.TopologySpreadConstraint) {
				c.LabelSelector, c.MatchLabelKeys = nil,
					[]string{"a"}
			}),
			want: []string{at + `.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set`}},
		{name: "SCH-078 a null selector and an empty one", change: func(s *corev1.PodSpec) {
			spread(func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = nil })(s)
			spread(func(c *corev1.TopologySpreadConstraint) {
				c.TopologyKey, c.LabelSelector = "host", &metav1.LabelSelector{}
			})(s)
		}},
		{name: "malformed selector", change: spread(func(c *corev1.TopologySpreadConstraint) {
			c.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "k", Operator: "x"}}
		}),
			want: []string{at +
				`.labelSelector.matchExpressions[0].operator: Invalid value: "x": not a valid selector operator`}},
	})
}

func TestValidateAffinity(t *testing.T) {
	node := func(terms ...corev1.NodeSelectorTerm) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		}
	}
	expression := func(r corev1.NodeSelectorRequirement) func(*corev1.PodSpec) {
		return node(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})
	}
	fieldOf := func(r corev1.NodeSelectorRequirement) func(*corev1.PodSpec) {
		return node(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{r}})
	}
	pod := func(term corev1.PodAffinityTerm) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		}
	}
	const terms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	const expr, fields = terms + "[0].matchExpressions[0]", terms + "[0].matchFields[0]"
	const podTerm = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	runAll(t, []row{
		{name: "all operators", change: node(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "a", Operator: "In", Values: []string{"b"}}, {Key: "a", Operator: "NotIn", Values: []string{"b"}},
			{Key: "a", Operator: "Exists"},
			{Key: "a", Operator: "DoesNotExist"}, {Key: "a", Operator: "Gt", Values: []string{"1"}},
			{Key: "a", Operator: "Lt", Values: []string{"1"}}},
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In",
				Values: []string{"n"}}}}, corev1.NodeSelectorTerm{})},
		{name: "no term", change: node(),
			want: []string{terms + `: Required value: must have at least one node selector term`}},
		{name: "In without values", change: expression(corev1.NodeSelectorRequirement{Key: "a", Operator: "In"}),
			want: []string{expr + ".values: Required value: must be specified when `operator` is 'In' or 'NotIn'"}},
		{name: "Exists with values", change: expression(corev1.NodeSelectorRequirement{Key: "a", Operator: "Exists",
			Values: []string{"b"}}),
			want: []string{expr +
				".values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"}},
		{name: "Gt with two values", change: expression(corev1.NodeSelectorRequirement{Key: "a", Operator: "Gt",
			Values: []string{"1", "2"}}),
			want: []string{expr +
				".values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"}},
		{name: "unknown operator and malformed key", change: expression(corev1.NodeSelectorRequirement{Key: "a b",
			Operator: "x"}),
			want: []string{expr + `.key: Invalid value: "a b": ` + notAName,
				expr + `.operator: Invalid value: "x": not a valid selector operator`}},
		{name: "another field", change: fieldOf(corev1.NodeSelectorRequirement{Key: "metadata.uid", Operator: "In",
			Values: []string{"b"}}),
			want: []string{fields + `.key: Invalid value: "metadata.uid": not a valid field selector key`}},
		{name: "two names", change: fieldOf(corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: "NotIn",
			Values: []string{"b", "c"}}),
			want: []string{fields + ".values: Required value: must be only one value when `operator` is 'In' or " +
				"'NotIn' for node field selector"}},
		{name: "a name that exists", change: fieldOf(corev1.NodeSelectorRequirement{Key: "metadata.name",
			Operator: "Exists"}),
			want: []string{fields + `.operator: Invalid value: "Exists": not a valid selector operator`}},
		{name: "a preference without a weight", change: func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{}}}}
		},
			want: []string{
				`spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100`,
			}},
		{name: "beside Pods", change: pod(corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: selector,
			Namespaces: []string{"n"}, NamespaceSelector: selector,
			MatchLabelKeys: []string{"a"}, MismatchLabelKeys: []string{"c"}})},
		{name: "beside Pods, wrong in every way", change: pod(corev1.PodAffinityTerm{Namespaces: []string{"A"},
			MatchLabelKeys: []string{"a"}}), want: []string{
			podTerm + `.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set`,
			podTerm +
				`.namespaces[0]: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			podTerm + `.topologyKey: Required value: can not be empty`}},
		{name: "one key for and against",
			change: pod(corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: selector,
				MatchLabelKeys: []string{"a"}, MismatchLabelKeys: []string{"a"}}),
			want: []string{podTerm +
				`.matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys`}},
		{name: "away from Pods, with too much weight", change: func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 101}}}}
		}, want: []string{
			`spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: Required value: can not be empty`,
			`spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100`,
		}},
	})
}
