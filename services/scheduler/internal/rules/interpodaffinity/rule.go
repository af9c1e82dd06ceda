// Package interpodaffinity places Pods by the Pods that there are in the domains of node labels, as
// spec.affinity.podAffinity and podAntiAffinity ask, those of the Pod and those of the Pods that are there.
//
//keelson:decision
package interpodaffinity

import (
	"slices"
	"strings"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

const name = "InterPodAffinity"

// What terms are for.
const (
	together = name + " required"      // affinity of a Pod that waits: all of its terms must select
	attracts = name + " attracts"      // a required affinity term, as Pods that it selects see it
	apart    = name + " anti required" // a required anti-affinity term
	prefers  = name + " preferred"
	avoids   = name + " anti preferred"
	unread   = name + " unread: " // of a Pod that waits, with what is wrong
)

// Args are the arguments of the plugin.
type Args struct {
	// HardPodAffinityWeight is what a required affinity term of a Pod that is there adds for the Pods that it selects.
	HardPodAffinityWeight int64
	// IgnorePreferredTermsOfExistingPods leaves out what Pods that are there prefer, where the Pod itself prefers
	// nothing.
	IgnorePreferredTermsOfExistingPods bool
}

// Default are the arguments where none are given.
func Default() Args { return Args{HardPodAffinityWeight: 1} }

// Rule refuses nodes where a required term would be broken, of the Pod or of a Pod that is there, and ranks nodes by
// the preferred terms of both.
func Rule(a Args) rules.Rule {
	return rules.Rule{Name: name, Weight: 2, Terms: terms, Asks: asks, Filter: filter, Score: a.score}
}

// of returns the terms among these that are for a purpose.
func of(terms []*columns.Term, purpose string) []*columns.Term {
	return slices.DeleteFunc(slices.Clone(terms), func(t *columns.Term) bool { return t.Purpose != purpose })
}

// Why nodes are refused.
const (
	alone    = "node(s) didn't match pod affinity rules"
	notApart = "node(s) didn't match pod anti-affinity rules"
	repelled = "node(s) didn't satisfy existing pods anti-affinity rules"
)

func filter(p rules.Pod) *rules.Filter {
	for _, t := range p.Terms {
		if why, ok := strings.CutPrefix(t.Purpose, unread); ok {
			return &rules.Filter{Texts: []string{"the Pod's affinity cannot be read: " + why}, Pins: &rules.Pins{},
				Whole: true, Judge: rules.ByShape(func(columns.View) rules.Reasons { return 1 })}
		}
	}
	with, against, existing := of(p.Terms, together), of(p.Terms, apart), of(p.SelectedBy, apart)
	if len(with)+len(against)+len(existing) == 0 {
		return nil
	}
	counts := make([]columns.Count, 0, len(with)+len(against)+len(existing))
	for _, t := range slices.Concat(with, against) {
		counts = append(counts, columns.Count{Term: t})
	}
	for _, t := range existing {
		counts = append(counts, columns.Count{Term: t, Carriers: true})
	}
	// All of its terms select the same Pods.
	first := len(with) > 0 && p.IsSelectedBy(with[0])
	return &rules.Filter{Texts: []string{alone, notApart, repelled}, Incurable: 1, // alone
		Judge: rules.ByDomain(counts, func(domains []columns.Domain) rules.Reasons {
			own := domains[:len(with)+len(against)]
			switch {
			case !joins(own[:len(with)], first):
				return 1
			case slices.ContainsFunc(own[len(with):], occupied):
				return 2
			case slices.ContainsFunc(domains[len(own):], occupied):
				return 4
			}
			return 0
		})}
}

func occupied(d columns.Domain) bool { return d.Exists && d.Pods > 0 }

// joins reports whether each domain has a Pod to go with. The first of a group goes where it likes.
func joins(domains []columns.Domain, first bool) bool {
	found := true
	for i := range domains {
		if !domains[i].Exists {
			return false
		}
		found = found && domains[i].Pods > 0
		first = first && domains[i].Total == 0
	}
	return found || first
}

// score adds up the weights of the terms, one for each Pod of the domain.
func (a Args) score(p rules.Pod) *rules.Score {
	var (
		counts  []columns.Count
		weights []int64
	)
	add := func(terms []*columns.Term, carriers bool, weight func(*columns.Term) int64) {
		for _, t := range terms {
			counts = append(counts, columns.Count{Term: t, Carriers: carriers})
			weights = append(weights, weight(t))
		}
	}
	plus := func(t *columns.Term) int64 { return int64(t.Weight) }
	minus := func(t *columns.Term) int64 { return -int64(t.Weight) }
	add(of(p.Terms, prefers), false, plus)
	add(of(p.Terms, avoids), false, minus)
	if len(counts) == 0 && a.IgnorePreferredTermsOfExistingPods {
		return nil
	}
	if a.HardPodAffinityWeight > 0 {
		add(of(p.SelectedBy, attracts), true, func(*columns.Term) int64 { return a.HardPodAffinityWeight })
	}
	add(of(p.SelectedBy, prefers), true, plus)
	add(of(p.SelectedBy, avoids), true, minus)
	if len(counts) == 0 {
		return nil
	}
	return &rules.Score{Order: rules.HighestIsBest,
		Judge: rules.ByDomain(counts, func(domains []columns.Domain) int64 {
			var sum int64
			for i := range domains {
				sum += weights[i] * int64(domains[i].Pods)
			}
			return sum
		})}
}
