package interpodaffinity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"keelson.dev/services/scheduler/internal/columns"
)

// terms returns what a Pod carries with a node or without one. A term that cannot be read is left out.
func terms(p *corev1.Pod) []columns.TermSpec {
	if p.Spec.Affinity == nil {
		return nil
	}
	var specs []columns.TermSpec
	add := func(purpose string, t *corev1.PodAffinityTerm, weight int32) {
		if spec, err := read(p, t); err == nil {
			spec.Purpose, spec.Weight = purpose, weight
			specs = append(specs, spec)
		}
	}
	if a := p.Spec.Affinity.PodAffinity; a != nil {
		for i := range a.RequiredDuringSchedulingIgnoredDuringExecution {
			add(attracts, &a.RequiredDuringSchedulingIgnoredDuringExecution[i], 0)
		}
		for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			t := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
			add(prefers, &t.PodAffinityTerm, t.Weight)
		}
	}
	if a := p.Spec.Affinity.PodAntiAffinity; a != nil {
		for i := range a.RequiredDuringSchedulingIgnoredDuringExecution {
			add(apart, &a.RequiredDuringSchedulingIgnoredDuringExecution[i], 0)
		}
		for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			t := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
			add(avoids, &t.PodAffinityTerm, t.Weight)
		}
	}
	return specs
}

// asks returns what a Pod that waits looks for: for each required affinity term the Pods that all of them select, and
// what is wrong with a required term that cannot be read.
func asks(p *corev1.Pod, _ labels.Selector) []columns.TermSpec {
	if p.Spec.Affinity == nil {
		return nil
	}
	if a := p.Spec.Affinity.PodAntiAffinity; a != nil {
		for i := range a.RequiredDuringSchedulingIgnoredDuringExecution {
			if _, err := read(p, &a.RequiredDuringSchedulingIgnoredDuringExecution[i]); err != nil {
				return cannotRead(err)
			}
		}
	}
	if p.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	required := p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	all := columns.TermSpec{Purpose: together, OneSided: true}
	keys := make([]string, 0, len(required))
	for i := range required {
		spec, err := read(p, &required[i])
		if err != nil {
			return cannotRead(err)
		}
		all.Selectors, all.In = append(all.Selectors, spec.Selectors...), append(all.In, spec.In...)
		if !slices.Contains(keys, spec.TopologyKey) {
			keys = append(keys, spec.TopologyKey)
		}
	}
	specs := make([]columns.TermSpec, 0, len(keys))
	for _, key := range keys {
		spec := all
		spec.TopologyKey = key
		specs = append(specs, spec)
	}
	return specs
}

func cannotRead(err error) []columns.TermSpec {
	return []columns.TermSpec{{Purpose: unread + err.Error(), OneSided: true,
		Selectors: []labels.Selector{labels.Nothing()}}}
}

// read returns what a term selects, of which Pods in which namespaces.
func read(p *corev1.Pod, t *corev1.PodAffinityTerm) (columns.TermSpec, error) {
	selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	if err != nil {
		return columns.TermSpec{}, err
	}
	spec := columns.TermSpec{TopologyKey: t.TopologyKey, Selectors: []labels.Selector{selector}}
	for _, keys := range []struct {
		keys     []string
		operator selection.Operator
	}{{t.MatchLabelKeys, selection.In}, {t.MismatchLabelKeys, selection.NotIn}} {
		for _, key := range keys.keys {
			value, ok := p.Labels[key]
			if !ok {
				continue
			}
			r, err := labels.NewRequirement(key, keys.operator, []string{value})
			if err != nil {
				return columns.TermSpec{}, err
			}
			spec.Selectors = append(spec.Selectors, labels.NewSelector().Add(*r))
		}
	}
	within := columns.NamespaceSet{Names: t.Namespaces}
	switch {
	case t.NamespaceSelector != nil:
		if within.Selector, err = metav1.LabelSelectorAsSelector(t.NamespaceSelector); err != nil {
			return columns.TermSpec{}, err
		}
	case len(t.Namespaces) == 0:
		within.Names = []string{p.Namespace}
	}
	spec.In = []columns.NamespaceSet{within}
	return spec, nil
}
