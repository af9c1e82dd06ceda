package podset

import (
	"fmt"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/podview"
)

// Fold is a figure that the index keeps of every group: how many of its Pods hold a condition, by adding those that
// come and taking off those that go.
type Fold struct {
	// Name identifies the fold within an index.
	Name string
	// Holds is pure and reads nothing of a Pod that the cache does not keep (podfeed.Trim).
	Holds func(*corev1.Pod) bool
	// Listed folds keep the Pods, too, so that listing them costs as many as there are.
	Listed bool
}

// Figure is a fold of an index.
type Figure uint8

// The figures that every index keeps. Where an owner has looked at its Pods, those that its selector does not match
// are neither Active nor Ready nor Terminating but Unmatched, and Labelled and Available are known.
const (
	Active      Figure = iota // neither ended nor being deleted
	Ready                     // active, with a true condition Ready
	Terminating               // being deleted and not ended
	Terminal                  // ended for good
	Failed                    // ended in failure
	Orphan                    // active and without a controller; listed
	Labelled                  // active, with all labels of the owner's template
	Available                 // ready for as long as the owner asks
	Unmatched                 // active, though the owner's selector does not match; listed
	inherent                  // how many there are
)

// maxFigures bounds the folds of an index.
const maxFigures = 16

var inherentFolds = [inherent]Fold{
	Active: {Name: "active", Holds: podview.IsActive},
	Ready:  {Name: "ready", Holds: func(pod *corev1.Pod) bool { return podview.IsActive(pod) && podview.IsReady(pod) }},
	Terminating: {Name: "terminating", Holds: func(pod *corev1.Pod) bool {
		return podview.IsTerminating(pod) && !podview.IsTerminal(pod)
	}},
	Terminal: {Name: "terminal", Holds: podview.IsTerminal},
	Failed:   {Name: "failed", Holds: func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed }},
	Orphan: {Name: "orphan", Listed: true, Holds: func(pod *corev1.Pod) bool {
		return podview.IsActive(pod) && metav1.GetControllerOfNoCopy(pod) == nil
	}},
	// These depend on the owner: see group.figuresOf.
	Labelled: {Name: "labelled"}, Available: {Name: "available"}, Unmatched: {Name: "unmatched", Listed: true},
}

// WithFinalizer holds for Pods that have ended and still have the finalizer: those that a Job has yet to count.
func WithFinalizer(finalizer string) Fold {
	return Fold{Name: "terminal with " + finalizer, Listed: true, Holds: func(pod *corev1.Pod) bool {
		return podview.IsTerminal(pod) && slices.Contains(pod.Finalizers, finalizer)
	}}
}

// figures are the set of those that hold for a Pod.
type figures uint32

func (f figures) has(all ...Figure) bool {
	for _, figure := range all {
		if f&(1<<figure) == 0 {
			return false
		}
	}
	return true
}

func (f figures) with(figure Figure, holds bool) figures {
	if holds {
		return f | 1<<figure
	}
	return f &^ (1 << figure)
}

// each calls visit for every figure of the set.
func (f figures) each(visit func(Figure)) {
	for ; f != 0; f &= f - 1 {
		visit(Figure(bits.TrailingZeros32(uint32(f))))
	}
}

// folds are those of one index, by their figures.
type folds struct {
	all    []Fold
	listed figures
}

// add returns the figure of a fold and whether it is new. A name belongs to one fold.
func (f *folds) add(fold Fold) (Figure, bool) {
	if at := slices.IndexFunc(f.all, func(known Fold) bool { return known.Name == fold.Name }); at >= 0 {
		return Figure(at), false
	}
	figure := Figure(len(f.all))
	if figure >= maxFigures {
		panic(fmt.Sprintf("fold %q is one more than the %d that an index keeps", fold.Name, maxFigures))
	}
	f.all = append(f.all, fold)
	f.listed = f.listed.with(figure, fold.Listed)
	return figure, true
}

func (f *folds) of(pod *corev1.Pod) figures {
	var holding figures
	for i := range f.all {
		if holds := f.all[i].Holds; holds != nil && holds(pod) {
			holding |= 1 << i
		}
	}
	return holding
}
