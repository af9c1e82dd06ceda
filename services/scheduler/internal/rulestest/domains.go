package rulestest

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// DomainRules are three rules ByDomain, as small as they can be: they read a part of the API's constraints, and show
// that the engine carries such rules.
func DomainRules() []rules.Rule { return []rules.Rule{spreading(), apart(), together()} }

// Why nodes are refused by DomainRules.
const (
	NoDomain  = "no domain to spread over"
	Uneven    = "too many in the domain"
	NotApart  = "one in the domain that it keeps apart from"
	KeptApart = "one in the domain that keeps apart from it"
	Alone     = "none in the domain that it goes with"
)

func selector(s *metav1.LabelSelector) []labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		panic(err)
	}
	return []labels.Selector{parsed}
}

// termsFor returns the terms of a purpose that the Pod carries.
func termsFor(p rules.Pod, purpose string) []*columns.Term {
	return slices.DeleteFunc(slices.Clone(p.Terms), func(t *columns.Term) bool { return t.Purpose != purpose })
}

// spreading reads spec.topologySpreadConstraints with maxSkew; nodes outside of spec.nodeSelector do not count. It
// prefers the domains with the fewest Pods for constraints of ScheduleAnyway.
func spreading() rules.Rule {
	return rules.Rule{
		Name: "Spreading", Weight: 2,
		Key: func(b []byte, p rules.Pod) []byte {
			for _, c := range p.Spec.TopologySpreadConstraints {
				b = fmt.Appendf(b, "%d %s,", c.MaxSkew, c.WhenUnsatisfiable)
			}
			return append(b, scope(p).Key...)
		},
		Terms: func(p *corev1.Pod) (specs []columns.TermSpec) {
			for _, c := range p.Spec.TopologySpreadConstraints {
				specs = append(specs, columns.TermSpec{Purpose: "Spreading", TopologyKey: c.TopologyKey, LiveOnly: true,
					Namespaces: []string{p.Namespace}, Selectors: selector(c.LabelSelector)})
			}
			return specs
		},
		Filter: spreadFilter,
		Score:  spreadScore,
	}
}

func scope(p rules.Pod) *columns.Scope {
	return &columns.Scope{Key: fmt.Sprint(p.Spec.NodeSelector), Has: func(v columns.View) bool {
		return labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(v.Node().Labels))
	}}
}

// spreadCounts returns what the constraints of an action count, their skews, and which of the terms selects the Pod.
func spreadCounts(p rules.Pod, action corev1.UnsatisfiableConstraintAction) (counts []columns.Count, skew, own []int) {
	for i, t := range termsFor(p, "Spreading") {
		c := p.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != action {
			continue
		}
		counts, skew = append(counts, columns.Count{Term: t, Scope: scope(p)}), append(skew, int(c.MaxSkew))
		own = append(own, 0)
		if p.IsSelectedBy(t) {
			own[len(own)-1] = 1
		}
	}
	return counts, skew, own
}

func spreadFilter(p rules.Pod) *rules.Filter {
	counts, skew, own := spreadCounts(p, corev1.DoNotSchedule)
	if len(counts) == 0 {
		return nil
	}
	return &rules.Filter{Texts: []string{NoDomain, Uneven}, Incurable: 1,
		Judge: rules.ByDomain(counts, func(domains []columns.Domain) rules.Reasons {
			for i, d := range domains {
				switch {
				case !d.Exists:
					return 1
				case d.Pods+own[i]-d.Least > skew[i]:
					return 2
				}
			}
			return 0
		})}
}

func spreadScore(p rules.Pod) *rules.Score {
	counts, _, _ := spreadCounts(p, corev1.ScheduleAnyway)
	if len(counts) == 0 {
		return nil
	}
	return &rules.Score{Order: rules.LowerIsBetter, Judge: rules.ByDomain(counts, func(domains []columns.Domain) int64 {
		var pods int64
		for _, d := range domains {
			pods += int64(d.Pods)
		}
		return pods
	})}
}

func affinityTerms(purpose string, p *corev1.Pod, terms []corev1.PodAffinityTerm) (specs []columns.TermSpec) {
	for _, t := range terms {
		spec := columns.TermSpec{Purpose: purpose, TopologyKey: t.TopologyKey, Selectors: selector(t.LabelSelector),
			Namespaces: []string{p.Namespace}}
		if len(t.Namespaces) > 0 {
			spec.Namespaces = t.Namespaces
		}
		specs = append(specs, spec)
	}
	return specs
}

// apart keeps Pods of required anti-affinity out of the domains of those that they select, and the other way round.
func apart() rules.Rule {
	return rules.Rule{
		Name: "Apart",
		Terms: func(p *corev1.Pod) []columns.TermSpec {
			if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
				return nil
			}
			terms := p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			return affinityTerms("Apart", p, terms)
		},
		Filter: func(p rules.Pod) *rules.Filter {
			var counts []columns.Count
			for _, t := range termsFor(p, "Apart") {
				counts = append(counts, columns.Count{Term: t})
			}
			own := len(counts)
			for _, t := range p.SelectedBy {
				if t.Purpose == "Apart" {
					counts = append(counts, columns.Count{Term: t, Carriers: true})
				}
			}
			if len(counts) == 0 {
				return nil
			}
			occupied := func(d columns.Domain) bool { return d.Exists && d.Pods > 0 }
			return &rules.Filter{Texts: []string{NotApart, KeptApart},
				Judge: rules.ByDomain(counts, func(domains []columns.Domain) rules.Reasons {
					switch {
					case slices.ContainsFunc(domains[:own], occupied):
						return 1
					case slices.ContainsFunc(domains[own:], occupied):
						return 2
					}
					return 0
				})}
		},
	}
}

// together keeps Pods of required affinity in the domains of those that they select; the first of its kind goes
// anywhere.
func together() rules.Rule {
	return rules.Rule{
		Name: "Together",
		Terms: func(p *corev1.Pod) []columns.TermSpec {
			if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
				return nil
			}
			terms := p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			return affinityTerms("Together", p, terms)
		},
		Filter: func(p rules.Pod) *rules.Filter {
			terms := termsFor(p, "Together")
			if len(terms) == 0 {
				return nil
			}
			var counts []columns.Count
			for _, t := range terms {
				counts = append(counts, columns.Count{Term: t})
			}
			return &rules.Filter{Texts: []string{Alone}, Incurable: 1,
				Judge: rules.ByDomain(counts, func(domains []columns.Domain) rules.Reasons {
					for i, d := range domains {
						first := d.Total == 0 && p.IsSelectedBy(terms[i])
						if !d.Exists || d.Pods == 0 && !first {
							return 1
						}
					}
					return 0
				})}
		},
	}
}

// Labelling gives the Pod a label.
func Labelling(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = maps.Clone(p.Labels)
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[key] = value
	}
}

// Spreading adds a spread constraint over Pods of a label.
func Spreading(key string, skew int32, action corev1.UnsatisfiableConstraintAction, label, value string,
) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: action, LabelSelector: matching(label, value)})
	}
}

// AntiAffinity adds a term of required anti-affinity against Pods of a label.
func AntiAffinity(key, label, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		a := affinity(p)
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		terms := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*terms = append(*terms, corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: matching(label, value)})
	}
}

// Affinity adds a term of required affinity to Pods of a label.
func Affinity(key, label, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		a := affinity(p)
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		terms := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*terms = append(*terms, corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: matching(label, value)})
	}
}

func affinity(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

func matching(label, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}
}
