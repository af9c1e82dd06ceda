// Package conditions keeps the conditions of a status by the API's rules: one of each type, in a stable order, with
// times that say since when. It is pure: what is given to it is never changed.
//
//keelson:decision
package conditions

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind reads and writes conditions C, whose types are Ts. It is the accessor to the parts that the rules are about.
type Kind[C any, T ~string] func(*C) Fields[T]

// Fields are the parts of one condition. What is a pointer points into the condition.
type Fields[T ~string] struct {
	Type                    T
	Status, Reason, Message string
	// LastTransitionTime moves when the status changes, and only then.
	LastTransitionTime *metav1.Time
	// LastUpdateTime moves with any change, or to the time that the new condition brings along; nil for conditions
	// without one.
	LastUpdateTime *metav1.Time
	// LastProbeTime is what the new condition brings along, or else what it was; nil for conditions without one.
	LastProbeTime *metav1.Time
	// ObservedGeneration is the new condition's; 0 for conditions without one.
	ObservedGeneration int64
}

// Find returns the condition of the type, or nil. The result points into the list.
func (k Kind[C, T]) Find(list []C, kind T) *C {
	at := k.index(list, kind)
	if at < 0 {
		return nil
	}
	return &list[at]
}

// Set returns the list with the condition as the only one of its type, at its old place or else at the end, and whether
// it says anything new. Its times are those of Follow.
func (k Kind[C, T]) Set(list []C, next C, now time.Time) (set []C, changed bool) {
	next, changed = k.Follow(list, next, now)
	kind := k(&next).Type
	at := k.index(list, kind)
	if at < 0 {
		return append(slices.Clip(list), next), true
	}
	set = make([]C, 0, len(list))
	for i := range list {
		switch {
		case i == at:
			set = append(set, next)
		case k(&list[i]).Type != kind:
			set = append(set, list[i])
		}
	}
	return set, changed || len(set) < len(list)
}

// Follow returns the condition with the times that it has after the one of its type in the list, and whether it is
// news. The condition's transition time is not read: it follows from the list.
func (k Kind[C, T]) Follow(list []C, next C, now time.Time) (followed C, changed bool) {
	to, stamp := k(&next), metav1.NewTime(now)
	if last := k.Find(list, to.Type); last != nil {
		return next, to.follow(k(last), stamp)
	}
	*to.LastTransitionTime = stamp
	if to.LastUpdateTime != nil {
		*to.LastUpdateTime = stamp
	}
	return next, true
}

// follow sets the times of a condition that follow from the last one of its type, and reports whether it is news.
func (f Fields[T]) follow(last Fields[T], now metav1.Time) (changed bool) {
	if *f.LastTransitionTime = *last.LastTransitionTime; f.Status != last.Status {
		*f.LastTransitionTime = now
	}
	if f.LastProbeTime != nil && f.LastProbeTime.IsZero() {
		*f.LastProbeTime = *last.LastProbeTime
	}
	changed = f.Status != last.Status || f.Reason != last.Reason || f.Message != last.Message ||
		f.ObservedGeneration != last.ObservedGeneration
	switch {
	case f.LastUpdateTime == nil:
	case changed:
		*f.LastUpdateTime = now
	case f.LastUpdateTime.IsZero():
		*f.LastUpdateTime = *last.LastUpdateTime
	default:
		changed = !f.LastUpdateTime.Equal(last.LastUpdateTime)
	}
	return changed
}

// Remove returns the list without conditions of the type.
func (k Kind[C, T]) Remove(list []C, kind T) []C {
	if k.index(list, kind) < 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(c C) bool { return k(&c).Type == kind })
}

func (k Kind[C, T]) index(list []C, kind T) int {
	for i := range list {
		if k(&list[i]).Type == kind {
			return i
		}
	}
	return -1
}
