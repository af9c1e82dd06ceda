// Package rules says what a scheduling rule is: a filter that keeps nodes from a Pod, a score that ranks the rest, or
// both. Each rule lives in a folder below this one and is listed in package config.
//
// A rule is made once for a class of Pods that are alike to every rule, and says by the constructor of its judgement
// what that depends on. So the scheduler can keep results instead of computing them again:
//
//	ByShape  the node's labels, taints and spec.unschedulable: judged once for all nodes of one shape
//	ByName   these, or the node's name and hostname: judged once for each node, and when its description changes
//	ByRoom   what the Pods on the node take: judged again when that one node changes
//	ByDomain how many Pods there are in the node's domain of a topology key, that a term selects or that carry it:
//	         judged once for all nodes that are alike but for their room, at each decision
//	ByImages which of some images the node has, and how many nodes have them: as ByDomain; scores only
//
// Rules are pure.
//
//keelson:decision
package rules

import (
	"encoding/binary"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/volumes"
)

// MaxScore is the best score that a single rule gives to a node.
const MaxScore = 100

// Pod is what rules judge: the first Pod that was seen of a class, and what each of the class takes of a node. It has
// neither name nor labels: rules that read them would make each Pod of an indexed Job or a StatefulSet a class of its
// own. Of its labels it has only their effect on others, the terms that select the Pod.
type Pod struct {
	Namespace string
	Spec      *corev1.PodSpec
	Usage     *columns.Usage
	// Terms are those that the Pod carries, as the rules made them and in their order.
	Terms []*columns.Term
	// SelectedBy are those that select it, its own and other Pods', by ID.
	SelectedBy []*columns.Term
	// Volumes are what its claims ask; nil for a Pod without claims.
	Volumes *volumes.Demand
	// Devices is what keeps it from the devices that it claims; empty for a Pod that claims none.
	Devices string
}

// IsSelectedBy reports whether the term selects the Pod.
func (p Pod) IsSelectedBy(t *columns.Term) bool { return slices.Contains(p.SelectedBy, t) }

// PodOf returns what rules read of the Pod.
func PodOf(p *corev1.Pod, u *columns.Usage) Pod {
	return Pod{Namespace: p.Namespace, Spec: &p.Spec, Usage: u}
}

// Rule is one entry of a profile.
type Rule struct {
	// Name is the name in KubeSchedulerConfiguration.
	Name string
	// Weight multiplies the score.
	Weight int64
	// Key appends all that the rule reads of a Pod, so that Pods of equal keys get equal judgements. Nil when it reads
	// nothing but the Usage.
	Key func(b []byte, p Pod) []byte
	// Terms returns the terms that a Pod carries, with a node or without one, for judgements ByDomain; nil when no Pod
	// carries any. Terms are part of the key.
	Terms func(*corev1.Pod) []columns.TermSpec
	// Asks returns the terms, all OneSided, that a Pod carries while it waits for a node. It is given the selector of
	// the Services and controllers that the Pod belongs to; nil where it belongs to none.
	Asks func(p *corev1.Pod, group labels.Selector) []columns.TermSpec
	// Filter returns the filter for the Pod; nil, or a nil result, when the Pod gives it nothing to refuse.
	Filter func(Pod) *Filter
	// Score returns the score for the Pod; nil, or a nil result, when all nodes are equal to it.
	Score func(Pod) *Score
}

// Dependency is what a judgement depends on.
type Dependency int

// The dependencies.
const (
	OnShape Dependency = iota
	OnName
	OnRoom
	OnDomain
	OnImages
)

// Judge judges a node: a filter with the Reasons against it, a score with a number. Make one with a constructor.
type Judge[T any] struct {
	on     Dependency
	shape  func(columns.View) T
	room   func(columns.Node) T
	domain func([]columns.Domain) T
	counts []columns.Count
	image  func([]columns.Image) T
	images []string
}

// ByShape judges by what nodes of one shape have in common.
func ByShape[T any](judge func(columns.View) T) Judge[T] { return Judge[T]{on: OnShape, shape: judge} }

// ByName judges by the description of a node, its name and hostname included.
func ByName[T any](judge func(columns.View) T) Judge[T] { return Judge[T]{on: OnName, shape: judge} }

// ByRoom judges by what is free on a node.
func ByRoom[T any](judge func(columns.Node) T) Judge[T] { return Judge[T]{on: OnRoom, room: judge} }

// ByDomain judges by the domains of a node, one for each of the counts and in their order.
func ByDomain[T any](counts []columns.Count, judge func([]columns.Domain) T) Judge[T] {
	return Judge[T]{on: OnDomain, counts: counts, domain: judge}
}

// ByImages judges by which of the images a node has: it is given one for each name, in their order, the zero Image for
// one that the node lacks.
func ByImages[T any](names []string, judge func([]columns.Image) T) Judge[T] {
	return Judge[T]{on: OnImages, images: names, image: judge}
}

// On returns what the judgement depends on.
func (j Judge[T]) On() Dependency { return j.on }

// View judges a node's description; only for a Judge ByShape or ByName.
func (j Judge[T]) View(v columns.View) T { return j.shape(v) }

// Node judges what is free on a node; only for a Judge ByRoom.
func (j Judge[T]) Node(n columns.Node) T { return j.room(n) }

// Counts returns what is counted in the domains of a node; only a Judge ByDomain has any.
func (j Judge[T]) Counts() []columns.Count { return j.counts }

// Domains judges the domains of a node; only for a Judge ByDomain. The slice is valid during the call.
func (j Judge[T]) Domains(domains []columns.Domain) T { return j.domain(domains) }

// ImageNames returns the images that are looked at; only a Judge ByImages has any.
func (j Judge[T]) ImageNames() []string { return j.images }

// Images judges the images of a node; only for a Judge ByImages. The slice is valid during the call.
func (j Judge[T]) Images(images []columns.Image) T { return j.image(images) }

// Reasons is a set of reasons against a node: bit i stands for the i-th text of the filter.
type Reasons uint64

// MaxTexts is how many texts a filter may have.
const MaxTexts = 64

// Filter refuses nodes.
type Filter struct {
	// Rule is the name of the rule, which Make sets.
	Rule string
	// Texts are what users read after the number of nodes, for example "Insufficient cpu".
	Texts []string
	Judge Judge[Reasons]
	// Pins are set where the filter lets few nodes pass, which it knows by name. The first text is the reason of all
	// others.
	Pins *Pins
	// Whole is set where the Pod is refused, whatever the nodes: users read the first text alone.
	Whole bool
	// Incurable are the reasons that no removal of Pods from the node can cure. All reasons of a judgement by a node's
	// description are, whatever stands here.
	Incurable Reasons
}

// Pins are the few nodes to which a Pod confines itself by name.
type Pins struct {
	// Names are values of metadata.name, Hostnames of the label kubernetes.io/hostname.
	Names, Hostnames []string
	// Judged is set where the filter, ByShape or ByName, says for what reason it refuses each of the others.
	Judged bool
}

// Score ranks nodes. One ByRoom or ByImages is from 0 to MaxScore; any other is of any size, and Order makes it one
// from 0 to MaxScore among the nodes in question.
type Score struct {
	Weight int64
	Judge  Judge[int64]
	Order  Order
	// InAll is set where only nodes that are in a domain of each count get a score; it is 0 for the others, who have no
	// part in the order.
	InAll bool
}

// Order says which raw scores are good.
type Order int

// The orders of raw scores.
const (
	// HigherIsBetter gives MaxScore to the greatest and counts from 0, of which there is nothing less.
	HigherIsBetter Order = iota
	// LowerIsBetter gives MaxScore to 0, of which there is nothing less, and 0 to the greatest.
	LowerIsBetter
	// HighestIsBest gives MaxScore to the greatest and 0 to the least, which may be negative; 0 to all where they are
	// equal.
	HighestIsBest
	// EvenIsBest gives MaxScore to the least and counts the others by how far above it they are, as a share of the
	// greatest; MaxScore to all where the greatest is 0. Its judge is told how many domains there are to spread over.
	EvenIsBest
	// AsItIs takes a score that is from 0 to MaxScore already.
	AsItIs
)

// Normalize returns the score of a raw score where those of all nodes are from least to greatest.
func (o Order) Normalize(raw, least, greatest int64) int64 {
	switch {
	case o == AsItIs:
		return raw
	case o == EvenIsBest && greatest == 0:
		return MaxScore
	case o == EvenIsBest:
		return MaxScore * (greatest + least - raw) / greatest
	case o != HighestIsBest:
		least = 0
	}
	score := int64(0)
	if greatest > least {
		score = MaxScore * (raw - least) / (greatest - least)
	}
	if o == LowerIsBetter {
		return MaxScore - score
	}
	return score
}

// Profile is the rules for the Pods of one spec.schedulerName, in the order in which they judge.
type Profile struct {
	Name  string
	Rules []Rule
	// Preempts is set if a Pod that fits nowhere may preempt Pods of lower priority.
	Preempts bool
	// PreemptsAcross is set if it may preempt Pods on other nodes that keep it from a node.
	PreemptsAcross bool
	// BindTimeout is how long a Pod waits for its claims before it is tried again.
	BindTimeout time.Duration
}

// Key returns a string that is equal for Pods of one class.
func (p *Profile) Key(pod Pod) string {
	b := make([]byte, 0, 256)
	b = append(b, p.Name...)
	b = appendTerms(b, 1, pod.Terms)
	b = appendTerms(b, 2, pod.SelectedBy)
	b = append(b, 0)
	b = append(b, pod.Usage.Key()...)
	for i := range p.Rules {
		if key := p.Rules[i].Key; key != nil {
			start := len(b)
			b = key(b, pod)
			b = binary.LittleEndian.AppendUint32(b, uint32(len(b)-start)) // so that no key runs into the next
		}
	}
	return string(b)
}

// appendTerms appends the mark and the IDs of terms; nothing where there are none.
func appendTerms(b []byte, mark byte, terms []*columns.Term) []byte {
	if len(terms) == 0 {
		return b
	}
	b = binary.AppendUvarint(append(b, mark), uint64(len(terms)))
	for _, t := range terms {
		b = binary.AppendUvarint(b, uint64(t.ID))
	}
	return b
}

// Judgement is all filters and scores of one class.
type Judgement struct {
	Filters []*Filter
	Scores  []*Score
}

// Make returns the filters and scores that have something to say about the Pod.
func (p *Profile) Make(pod Pod) Judgement {
	var j Judgement
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.Filter != nil {
			if f := r.Filter(pod); f != nil {
				f.Rule = r.Name
				j.Filters = append(j.Filters, f)
			}
		}
		if r.Score != nil && r.Weight > 0 {
			if s := r.Score(pod); s != nil {
				s.Weight = r.Weight
				j.Scores = append(j.Scores, s)
			}
		}
	}
	j.Filters = confining(j.Filters)
	return j
}

// confining puts the filter first that knows by name which nodes it lets pass: the others are counted for its reason,
// unseen. One that refuses the Pod as a whole stands alone.
func confining(filters []*Filter) []*Filter {
	if i := slices.IndexFunc(filters, func(f *Filter) bool { return f.Whole }); i >= 0 {
		return filters[i : i+1]
	}
	if i := slices.IndexFunc(filters, func(f *Filter) bool { return f.Pins != nil }); i > 0 {
		pins := filters[i]
		return slices.Insert(slices.Delete(filters, i, i+1), 0, pins)
	}
	return filters
}
