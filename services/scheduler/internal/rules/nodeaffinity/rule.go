// Package nodeaffinity holds Pods to the nodes that spec.nodeSelector and spec.affinity.nodeAffinity ask for.
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
func Rule() rules.Rule {
	return rules.Rule{Name: "NodeAffinity", Weight: 2, Key: key, Filter: filter, Score: score}
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

func filter(p rules.Pod) *rules.Filter {
	if !Required(p.Spec) {
		return nil
	}
	want := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *p.Spec})
	_, named := p.Spec.NodeSelector[corev1.LabelHostname]
	if terms := required(p.Spec); terms != nil {
		named = named || slices.ContainsFunc(terms.NodeSelectorTerms, nodenames.Read)
	}
	return &rules.Filter{
		Texts: []string{"node(s) didn't match Pod's node affinity/selector"},
		Pins:  pins(p.Spec),
		Judge: by(named, func(v columns.View) rules.Reasons {
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

func score(p rules.Pod) *rules.Score {
	a := of(p.Spec)
	if a == nil || len(a.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	preferred := a.PreferredDuringSchedulingIgnoredDuringExecution
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
