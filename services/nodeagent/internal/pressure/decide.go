package pressure

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// State is what passes remember. Its loss costs only time: grace periods start again.
type State struct {
	// since holds since when a threshold has been crossed without interruption.
	since map[key]time.Time
	// due holds the thresholds that were crossed for their grace period and are not relieved yet.
	due map[key]bool
	// last holds when each condition last had a cause.
	last map[corev1.NodeConditionType]time.Time
	// victim is the Pod that was evicted last.
	victim victim
}

type victim struct {
	uid types.UID
	// until is when others are evicted even if the victim has not ended.
	until time.Time
}

// Resume takes over the conditions that an earlier agent wrote in the Node's status: each stays for the transition
// period from now.
func (s State) Resume(conditions []corev1.NodeCondition, now time.Time) State {
	s.last = maps.Clone(s.last)
	if s.last == nil {
		s.last = map[corev1.NodeConditionType]time.Time{}
	}
	for _, c := range conditions {
		switch c.Type {
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
			if c.Status == corev1.ConditionTrue {
				s.last[c.Type] = now
			}
		}
	}
	return s
}

// Conditions returns the conditions for what the node is short of, sorted.
func (s State) Conditions(transition time.Duration, now time.Time) []corev1.NodeConditionType {
	var out []corev1.NodeConditionType
	for condition, last := range s.last {
		if now.Sub(last) < transition || now.Equal(last) {
			out = append(out, condition)
		}
	}
	slices.Sort(out)
	return out
}

// Input is all that a decision depends on. Decide does not change it.
type Input struct {
	Now   time.Time
	Rules Rules
	State State
	// Levels holds the signals that could be read.
	Levels map[Signal]Level
}

// Verdict is the decision about a node.
type Verdict struct {
	State State
	// Relieve is the threshold to relieve now; nil if none.
	Relieve *Threshold
}

// Decide finds the crossed thresholds and which of them to relieve first. A signal that could not be read neither
// crosses nor relieves its thresholds.
func Decide(in Input) Verdict {
	next := State{since: map[key]time.Time{}, due: map[key]bool{}, last: map[corev1.NodeConditionType]time.Time{},
		victim: in.State.victim}
	maps.Copy(next.last, in.State.last)
	var relieve *Threshold
	for _, t := range byUrgency(in.Rules.Thresholds) {
		level, read := in.Levels[t.Signal]
		since, before := in.State.since[t.key()]
		due := in.State.due[t.key()]
		if !read {
			if before {
				next.since[t.key()] = since
			}
			if due {
				next.due[t.key()] = true
			}
			continue
		}
		if !t.crossed(level) && (!due || t.relieved(level)) {
			continue
		}
		if !before {
			since = in.Now
		}
		next.since[t.key()] = since
		next.last[t.Signal.condition()] = in.Now
		if in.Now.Sub(since) < t.Grace {
			continue
		}
		next.due[t.key()] = true
		if relieve == nil {
			relieve = &t
		}
	}
	return Verdict{State: next, Relieve: relieve}
}

// byUrgency puts thresholds of memory first.
func byUrgency(all []Threshold) []Threshold {
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b Threshold) int {
		return rank(a.Signal.starves() != memory) - rank(b.Signal.starves() != memory)
	})
	return out
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// Step is an action that may relieve a node before a Pod is evicted.
type Step string

// The steps.
const (
	RemoveDeadContainers Step = "remove containers that have ended"
	RemoveUnusedImages   Step = "remove images that nothing uses"
)

// Steps returns what may relieve a signal. If images have a file system of their own, so do containers, and only
// Pods fill the node's.
func (s Signal) Steps(imagesApart bool) []Step {
	switch s {
	case ImageFsAvailable, ImageFsInodesFree:
		return []Step{RemoveDeadContainers, RemoveUnusedImages}
	case NodeFsAvailable, NodeFsInodesFree:
		if !imagesApart {
			return []Step{RemoveDeadContainers, RemoveUnusedImages}
		}
	}
	return nil
}
