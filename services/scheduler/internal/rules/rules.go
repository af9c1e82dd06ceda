// Package rules says what a scheduling rule is: a filter that keeps nodes from a Pod, a score that ranks the rest, or
// both. Each rule lives in a folder below this one and is listed in package config.
//
// A rule is made once for a class of Pods that are alike to every rule, and says what its judgement depends on. This is
// what lets the scheduler keep results instead of computing them anew:
//
//	Shape  the node's labels, taints and spec.unschedulable: judged once for all nodes of one shape
//	Room   what the Pods on the node take: judged again when that one node changes
//
// Rules are pure.
package rules

import (
	"encoding/binary"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
)

// MaxScore is the best score that a single rule gives to a node.
const MaxScore = 100

// Pod is what rules judge: the first Pod that was seen of a class, and what each of the class takes of a node.
type Pod struct {
	*corev1.Pod
	Usage *columns.Usage
}

// Rule is one entry of a profile.
type Rule struct {
	// Name is the name in KubeSchedulerConfiguration.
	Name string
	// Weight multiplies the score.
	Weight int64
	// Key appends all that the rule reads of a Pod, so that Pods of equal keys get equal judgements. Nil when it reads
	// nothing but the Usage.
	Key func(b []byte, p *corev1.Pod) []byte
	// Filter returns the filter for the Pod; nil, or a nil result, when the Pod gives it nothing to refuse.
	Filter func(Pod) *Filter
	// Score returns the score for the Pod; nil, or a nil result, when all nodes are equal to it.
	Score func(Pod) *Score
}

// Reasons is a set of reasons against a node: bit i stands for the i-th text of the filter.
type Reasons uint32

// Filter refuses nodes. Either Shape or Room is set.
type Filter struct {
	// Texts are what users read after the number of nodes, for example "Insufficient cpu".
	Texts []string
	// Shape judges what nodes of one shape have in common.
	Shape func(columns.View) Reasons
	// ByName is set when Shape looks at the node's name or hostname too.
	ByName bool
	// Room judges what is free on the node.
	Room func(*columns.State, columns.Slot) Reasons
}

// Score ranks nodes. Either Shape or Room is set.
type Score struct {
	Weight int64
	// Shape returns a raw score of any size, which Order makes one from 0 to MaxScore among the nodes in question.
	Shape func(columns.View) int64
	Order Order
	// ByName is set when Shape looks at the node's name or hostname too.
	ByName bool
	// Room returns a score from 0 to MaxScore.
	Room func(*columns.State, columns.Slot) int64
}

// Order says which raw scores are good.
type Order int

// The orders of raw scores.
const (
	HigherIsBetter Order = iota
	LowerIsBetter
)

// Normalize returns the score of a raw score where the greatest raw score of any node is max.
func (o Order) Normalize(raw, max int64) int64 {
	score := int64(0)
	if max > 0 {
		score = MaxScore * raw / max
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
}

// Key returns a string that is equal for Pods of one class.
func (p *Profile) Key(pod Pod) string {
	b := make([]byte, 0, 256)
	b = append(b, p.Name...)
	b = append(b, 0)
	b = append(b, pod.Usage.Key()...)
	for i := range p.Rules {
		if key := p.Rules[i].Key; key != nil {
			start := len(b)
			b = key(b, pod.Pod)
			b = binary.LittleEndian.AppendUint32(b, uint32(len(b)-start)) // so that no key runs into the next
		}
	}
	return string(b)
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
	return j
}
