// Package nodeaffinity holds Pods to the nodes that spec.nodeSelector and spec.affinity.nodeAffinity ask for.
//
//keelson:decision
package nodeaffinity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/nodenames"
	"keelson.dev/services/scheduler/internal/rules"
)

// Rule refuses nodes that the node selector or the required affinity does not match, and ranks nodes by the preferred
// terms that match.
func Rule() rules.Rule { return WithAdded(nil) }

// WithAdded returns Rule where the profile adds an affinity to that of each Pod; nil for none.
func WithAdded(affinity *corev1.NodeAffinity) rules.Rule {
	a := added{}
	if affinity != nil {
		a.required = affinity.RequiredDuringSchedulingIgnoredDuringExecution
		a.preferred = affinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return rules.Rule{Name: "NodeAffinity", Weight: 2, Key: key, Filter: a.filter, Score: a.score}
}

// added is what a profile adds.
type added struct {
	required  *corev1.NodeSelector
	preferred []corev1.PreferredSchedulingTerm
}

func key(b []byte, p rules.Pod) []byte {
	b = append(appendSelector(b, p.Spec), 2)
	if a := of(p.Spec); a != nil {
		if wire, err := a.Marshal(); err == nil {
			b = append(b, wire...)
		}
	}
	return b
}

func appendSelector(b []byte, spec *corev1.PodSpec) []byte {
	keys := make([]string, 0, len(spec.NodeSelector))
	for k := range spec.NodeSelector {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		b = append(append(b, k...), 1)
		b = append(append(b, spec.NodeSelector[k]...), 1)
	}
	return b
}

// Required reports whether the Pod confines itself by a node selector or by required affinity.
func Required(spec *corev1.PodSpec) bool { return len(spec.NodeSelector) > 0 || required(spec) != nil }

// AppendRequired appends the node selector and the required affinity.
func AppendRequired(b []byte, spec *corev1.PodSpec) []byte {
	b = append(appendSelector(b, spec), 2)
	if terms := required(spec); terms != nil {
		if wire, err := terms.Marshal(); err == nil {
			b = append(b, wire...)
		}
	}
	return b
}

func of(spec *corev1.PodSpec) *corev1.NodeAffinity {
	if spec.Affinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity
}

func required(spec *corev1.PodSpec) *corev1.NodeSelector {
	if a := of(spec); a != nil {
		return a.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func (a added) filter(p rules.Pod) *rules.Filter {
	if !Required(p.Spec) && a.required == nil {
		return nil
	}
	want := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *p.Spec})
	enforced := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: a.required}}}})
	_, named := p.Spec.NodeSelector[corev1.LabelHostname]
	for _, terms := range []*corev1.NodeSelector{required(p.Spec), a.required} {
		named = named || terms != nil && slices.ContainsFunc(terms.NodeSelectorTerms, nodenames.Read)
	}
	return &rules.Filter{
		Texts: []string{"node(s) didn't match Pod's node affinity/selector",
			"node(s) didn't match scheduler-enforced node affinity"},
		Pins: a.pins(p.Spec),
		Judge: by(named, func(v columns.View) rules.Reasons {
			if match, err := enforced.Match(v.Node()); err != nil || !match {
				return 2
			}
			if match, err := want.Match(v.Node()); err != nil || !match {
				return 1
			}
			return 0
		}),
	}
}

// by judges by the shape alone where the terms do not read names.
func by[T any](named bool, judge func(columns.View) T) rules.Judge[T] {
	if named {
		return rules.ByName(judge)
	}
	return rules.ByShape(judge)
}

func (a added) score(p rules.Pod) *rules.Score {
	preferred := a.preferred
	if own := of(p.Spec); own != nil {
		preferred = slices.Concat(preferred, own.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if len(preferred) == 0 {
		return nil
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(preferred)
	if err != nil {
		// The API server refuses such terms; of an older object they prefer nothing.
		return nil
	}
	named := slices.ContainsFunc(preferred, func(t corev1.PreferredSchedulingTerm) bool {
		return nodenames.Read(t.Preference)
	})
	return &rules.Score{Judge: by(named, func(v columns.View) int64 { return terms.Score(v.Node()) })}
}
