package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const notAValue = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`

func requireNode(term corev1.NodeSelectorTerm) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{}, term}}}}
	}
}

// How many values each operator takes: the number itself passes, its neighbours do not.
func TestNumberOfSelectorValues(t *testing.T) {
	const at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1]"
	const some = "Required value: must be specified when `operator` is 'In' or 'NotIn'"
	const none = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
	const one = "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
	const oneName = "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
	for _, c := range []struct {
		operator corev1.NodeSelectorOperator
		byField  bool
		// said is what is said of no value, of one and of two.
		said [3]string
	}{
		{"In", false, [3]string{some, "", ""}},
		{"NotIn", false, [3]string{some, "", ""}},
		{"Exists", false, [3]string{"", none, none}},
		{"DoesNotExist", false, [3]string{"", none, none}},
		{"Gt", false, [3]string{one, "", one}},
		{"Lt", false, [3]string{one, "", one}},
		{"In", true, [3]string{oneName, "", oneName}},
		{"NotIn", true, [3]string{oneName, "", oneName}},
	} {
		for n, said := range c.said {
			requirement := corev1.NodeSelectorRequirement{Key: "zone", Operator: c.operator,
				Values: []string{"1", "2"}[:n]}
			list, term := "matchExpressions", corev1.NodeSelectorTerm{}
			if c.byField {
				list, requirement.Key = "matchFields", "metadata.name"
				term.MatchFields = []corev1.NodeSelectorRequirement{requirement}
			} else {
				term.MatchExpressions = []corev1.NodeSelectorRequirement{requirement}
			}
			var want []string
			if said != "" {
				want = []string{at + "." + list + "[0].values: " + said}
			}
			row{name: list + " " + string(c.operator) + " " + string(rune('0'+n)), change: requireNode(term),
				want: want}.run(t)
		}
	}
}

func TestMalformedNodeTerms(t *testing.T) {
	const at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1]"
	runAll(t, []row{
		{name: "a malformed value", change: requireNode(corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "k", Operator: "In",
				Values: []string{"ok", "a b"}}}}),
			want: []string{at + `.matchExpressions[0].values[1]: Invalid value: "a b": ` + notAValue}},
		{name: "a malformed name", change: requireNode(corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In",
				Values: []string{"A"}}}}),
			want: []string{at + `.matchFields[0].values[0]: Invalid value: "A": ` + notASub}},
		{name: "a name compared", change: requireNode(corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "Gt",
				Values: []string{"1"}}}}),
			want: []string{at + `.matchFields[0].operator: Invalid value: "Gt": not a valid selector operator`}},
		{name: "no key", change: requireNode(corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Operator: "Exists"}}}),
			want: []string{at + `.matchExpressions[0].key: Invalid value: "": name part must be non-empty`,
				at + `.matchExpressions[0].key: Invalid value: "": ` + notAName}},
	})
}

// All lists of terms are checked, and a weight lies between 1 and 100.
func TestPreferences(t *testing.T) {
	prefer := func(weight int32, operator corev1.NodeSelectorOperator) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: weight,
					Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "k", Operator: operator}}}}}}}
		}
	}
	weighted := func(weight int32) []corev1.WeightedPodAffinityTerm {
		return []corev1.WeightedPodAffinityTerm{{Weight: weight,
			PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone"}}}
	}
	pods := func(weight int32) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: weighted(weight)}}
		}
	}
	const soft = "preferredDuringSchedulingIgnoredDuringExecution[0]"
	const node, pod = "spec.affinity.nodeAffinity." + soft, "spec.affinity.podAffinity." + soft
	runAll(t, []row{
		{name: "least weight of a node", change: prefer(1, "Exists")},
		{name: "greatest weight of a node", change: prefer(100, "Exists")},
		{name: "too much weight of a node", change: prefer(101, "Exists"),
			want: []string{node + `.weight: Invalid value: 101: must be in the range 1-100`}},
		{name: "a malformed preference", change: prefer(1, "x"),
			want: []string{node +
				`.preference.matchExpressions[0].operator: Invalid value: "x": not a valid selector operator`}},
		{name: "no weight of Pods", change: pods(0),
			want: []string{pod + `.weight: Invalid value: 0: must be in the range 1-100`}},
		{name: "least weight of Pods", change: pods(1)},
		{name: "greatest weight of Pods", change: pods(100)},
		{name: "required distance", change: func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{{TopologyKey: "a b"}},
				PreferredDuringSchedulingIgnoredDuringExecution: weighted(100)}}
		}, want: []string{
			`spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "a b": ` +
				notAName,
		}},
	})
}

func TestMalformedPodTerms(t *testing.T) {
	unknown := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "x"}}}
	term := func(change func(*corev1.PodAffinityTerm)) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}}
			change(&term)
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		}
	}
	const at = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
	const twice = "exists in both matchLabelKeys and labelSelector"
	runAll(t, []row{
		{name: "selector", change: term(func(t *corev1.PodAffinityTerm) { t.LabelSelector = unknown }),
			want: []string{at +
				`.labelSelector.matchExpressions[0].operator: Invalid value: "x": not a valid selector operator`}},
		{name: "selector of namespaces",
			change: term(func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = unknown }),
			want: []string{at +
				`.namespaceSelector.matchExpressions[0].operator: Invalid value: "x": not a valid selector operator`}},
		{name: "keys", change: term(func(t *corev1.PodAffinityTerm) {
			t.MatchLabelKeys, t.MismatchLabelKeys = []string{"ok", "a b"}, []string{"c d"}
		}), want: []string{at + `.matchLabelKeys[1]: Invalid value: "a b": ` + notAName,
			at + `.mismatchLabelKeys[0]: Invalid value: "c d": ` + notAName}},
		{name: "keys that must differ, without a selector", change: term(func(t *corev1.PodAffinityTerm) {
			t.LabelSelector, t.MismatchLabelKeys = nil, []string{"a"}
		}), want: []string{at + `.mismatchLabelKeys: Forbidden: must not be specified when labelSelector is not set`}},
		{name: "neither keys nor a selector", change: term(func(t *corev1.PodAffinityTerm) { t.LabelSelector = nil })},
		{name: "a key as the server has joined it", change: term(func(t *corev1.PodAffinityTerm) {
			t.MatchLabelKeys, t.LabelSelector = []string{"a"}, joined("a")
		})},
		{name: "a key that the selector names too", change: term(func(t *corev1.PodAffinityTerm) {
			t.MatchLabelKeys, t.LabelSelector = []string{"b", "a"}, joined("a")
			t.LabelSelector.MatchLabels = map[string]string{"a": "w", "c": "w"}
		}), want: []string{at + `.matchLabelKeys[1]: Invalid value: "a": ` + twice}},
		{name: "a key that two requirements name", change: term(func(t *corev1.PodAffinityTerm) {
			t.MatchLabelKeys, t.LabelSelector = []string{"a"}, joined("a", "a")
		}), want: []string{at + `.matchLabelKeys[0]: Invalid value: "a": ` + twice}},
		{name: "a key that must differ may be named", change: term(func(t *corev1.PodAffinityTerm) {
			t.MismatchLabelKeys, t.LabelSelector = []string{"a"}, joined("a", "a")
		})},
		{name: "a key of a spread that the selector names too", change: func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
				WhenUnsatisfiable: "DoNotSchedule", MatchLabelKeys: []string{"a"}, LabelSelector: joined("a", "a")}}
		}, want: []string{`spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: "a": ` + twice}},
		{name: "a malformed key of a spread", change: func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "a b",
				WhenUnsatisfiable: "DoNotSchedule", MatchLabelKeys: []string{"c d"}, LabelSelector: joined()}}
		}, want: []string{`spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: "c d": ` + notAName,
			`spec.topologySpreadConstraints[0].topologyKey: Invalid value: "a b": ` + notAName}},
	})
}

// joined is a selector with one requirement for each key.
func joined(keys ...string) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	for _, key := range keys {
		selector.MatchExpressions = append(selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{"v"}})
	}
	return selector
}
